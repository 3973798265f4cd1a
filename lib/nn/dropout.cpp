#include "lerobot/nn/dropout.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "lerobot/nn/fused_node.hpp"
#include "nn/cpu_parts.hpp"
#include "nn/dropout_key.hpp"
#include "nn/parallel.hpp"

namespace lerobot::nn {
namespace {

bool has_kernel(const at::Tensor& x) {
  return x.is_cpu() && x.layout() == at::kStrided &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Calls f with a null pointer of the kernels' element type.
template <typename F>
void with_type(const at::Tensor& x, F&& f) {
  if (x.scalar_type() == at::kFloat)
    f(static_cast<float*>(nullptr));
  else
    f(static_cast<cpu::Bf16*>(nullptr));
}

}  // namespace

at::Tensor apply_mask(const cpu::DropoutMask& mask, const at::Tensor& x) {
  at::Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  with_type(x, [&]<typename T>(T*) {
    const at::Tensor contiguous = x.contiguous();
    const T* in = static_cast<const T*>(contiguous.const_data_ptr());
    T* to = static_cast<T*>(out.mutable_data_ptr());
    parallel_for(x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      cpu::dropout<T>(mask, begin, end - begin, in + begin, to + begin);
    });
  });
  return out;
}

namespace {

at::Tensor add_masked(const cpu::DropoutMask& mask, const at::Tensor& residual, const at::Tensor& x) {
  at::Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  with_type(x, [&]<typename T>(T*) {
    const at::Tensor a = residual.contiguous();
    const at::Tensor b = x.contiguous();
    const T* from = static_cast<const T*>(a.const_data_ptr());
    const T* in = static_cast<const T*>(b.const_data_ptr());
    T* to = static_cast<T*>(out.mutable_data_ptr());
    parallel_for(x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      cpu::add_dropout<T>(mask, begin, end - begin, from + begin, in + begin, to + begin);
    });
  });
  return out;
}

struct DropoutNode final : FusedNode {
  cpu::DropoutMask mask;
  std::string name() const override { return "LerobotDropout"; }
  torch::autograd::variable_list backward(const at::Tensor& grad) override { return {apply_mask(mask, grad)}; }
};

struct AddDropoutNode final : FusedNode {
  cpu::DropoutMask mask;
  std::string name() const override { return "LerobotAddDropout"; }
  torch::autograd::variable_list backward(const at::Tensor& grad) override {
    return {grad, task_should_compute_output(1) ? apply_mask(mask, grad) : at::Tensor()};
  }
};

}  // namespace

cpu::DropoutMask draw_mask(double p) {
  if (p <= 0.0) return {};
  const at::Generator& generator = at::detail::getDefaultCPUGenerator();
  auto* engine = at::check_generator<at::CPUGeneratorImpl>(generator);
  std::uint64_t key = 0;
  {
    const std::scoped_lock lock(engine->mutex_);
    key = engine->random64();
  }
  const double threshold = std::min(std::round(p * 4294967296.0), 4294967295.0);
  return {key, static_cast<std::uint32_t>(threshold), static_cast<float>(1.0 / (1.0 - p))};
}

at::Tensor dropout(const at::Tensor& x, double p) {
  if (p <= 0.0) return x;
  if (!has_kernel(x) || p >= 1.0) return at::dropout(x, p, /*train=*/true);
  const cpu::DropoutMask mask = draw_mask(p);
  at::Tensor out;
  {
    const BelowAutograd guard;
    out = apply_mask(mask, x);
  }
  if (needs_node(x)) attach_node<DropoutNode>(out, x)->mask = mask;
  return out;
}

at::Tensor add_dropout(const at::Tensor& residual, const at::Tensor& x, double p) {
  if (p <= 0.0 || p >= 1.0 || !has_kernel(x) || residual.scalar_type() != x.scalar_type() ||
      residual.sizes() != x.sizes())
    return at::add(residual, dropout(x, p));
  const cpu::DropoutMask mask = draw_mask(p);
  at::Tensor out;
  {
    const BelowAutograd guard;
    out = add_masked(mask, residual, x);
  }
  if (needs_node(residual, x)) attach_node<AddDropoutNode>(out, residual, x)->mask = mask;
  return out;
}

}  // namespace lerobot::nn
