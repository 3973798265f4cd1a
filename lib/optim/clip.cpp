#include "lerobot/optim/clip.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "lerobot/comm/collectives.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/optim/exact_sum.hpp"

namespace lerobot::optim {

namespace {

/// Sums of one rank, added up over the group.
struct LocalSums {
  ExactSum squares;
  std::int64_t num_nan = 0;  ///< gradients with a NaN
  std::int64_t num_bad = 0;  ///< gradients with an infinity or NaN
  std::int64_t first_bad = std::numeric_limits<std::int64_t>::max();

  void count_bad(std::size_t index, bool has_nan) {
    ++num_bad;
    num_nan += has_nan ? 1 : 0;
    first_bad = std::min(first_bad, static_cast<std::int64_t>(index));
  }
};

void add_cpu(LocalSums& sums, std::size_t index, const at::Tensor& grad) {
  if (grad.scalar_type() == at::kFloat && grad.is_non_overlapping_and_dense()) {
    // the order of elements does not matter, so any dense layout is read as it lies
    const std::span values(grad.const_data_ptr<float>(), static_cast<std::size_t>(grad.numel()));
    if (!sums.squares.add_squares(values))
      sums.count_bad(index, std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
    return;
  }
  if (grad.scalar_type() != at::kDouble) return add_cpu(sums, index, grad.to(at::kFloat).contiguous());
  // Squares of doubles round, one by one: still independent of the order.
  const at::Tensor dense = grad.contiguous();
  const std::span values(dense.const_data_ptr<double>(), static_cast<std::size_t>(dense.numel()));
  const auto bad = [](double v) { return !std::isfinite(v * v); };
  if (std::any_of(values.begin(), values.end(), bad))
    return sums.count_bad(index, std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); }));
  for (const double v : values) sums.squares.add(v * v);
}

/// One number per tensor, computed on the device in double and fetched together.
void add_device(LocalSums& sums, const std::vector<std::size_t>& indices, const std::vector<at::Tensor>& grads) {
  std::vector<at::Tensor> norms;
  norms.reserve(grads.size());
  for (const auto& grad : grads) norms.push_back(at::linalg_vector_norm(grad, 2, std::nullopt, false, at::kDouble));
  const at::Tensor host = at::stack(norms).to(at::kCPU);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const double norm = host.const_data_ptr<double>()[i];
    if (std::isfinite(norm))
      sums.squares.add(norm * norm);
    else
      sums.count_bad(indices[i], std::isnan(norm));
  }
}

LocalSums sum_local(const std::vector<NamedGradient>& gradients, bool count_whole) {
  LocalSums sums;
  std::vector<std::size_t> device_indices;
  std::vector<at::Tensor> device_grads;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& [name, grad, is_sharded] = gradients[i];
    if (!grad.defined() || grad.numel() == 0 || !(is_sharded || count_whole)) continue;
    if (grad.is_cpu()) {
      add_cpu(sums, i, grad);
    } else {
      device_indices.push_back(i);
      device_grads.push_back(grad);
    }
  }
  if (!device_grads.empty()) add_device(sums, device_indices, device_grads);
  return sums;
}

at::Device device_of(const std::vector<NamedGradient>& gradients) {
  for (const auto& gradient : gradients)
    if (gradient.grad.defined()) return gradient.grad.device();
  return at::kCPU;
}

void all_reduce(const at::Tensor& values, c10d::ReduceOp op, at::Device device, c10d::ProcessGroup& group) {
  const at::Tensor sent = values.to(device);
  comm::all_reduce(group, sent, op);
  if (!sent.is_same(values)) values.copy_(sent);
}

void reduce(LocalSums& sums, at::Device device, c10d::ProcessGroup& group) {
  const auto& words = sums.squares.words();
  at::Tensor values = at::empty({static_cast<std::int64_t>(words.size()) + 2}, at::kLong);
  auto* data = values.mutable_data_ptr<std::int64_t>();
  std::copy(words.begin(), words.end(), data);
  data[words.size()] = sums.num_nan;
  data[words.size() + 1] = sums.num_bad;
  all_reduce(values, c10d::ReduceOp::SUM, device, group);
  sums.squares = {};
  sums.squares.add_words(std::span<const std::int64_t, ExactSum::kWords>(data, ExactSum::kWords));
  sums.num_nan = data[ExactSum::kWords];
  sums.num_bad = data[ExactSum::kWords + 1];
  if (sums.num_bad == 0) return;
  at::Tensor first = at::full({1}, sums.first_bad, at::kLong);
  all_reduce(first, c10d::ReduceOp::MIN, device, group);
  sums.first_bad = first.item<std::int64_t>();
}

}  // namespace

GradNorm global_grad_norm(const std::vector<NamedGradient>& gradients, const comm::ProcessGroupPtr& shard_group) {
  const at::NoGradGuard no_grad;
  const bool alone = !shard_group || shard_group->getSize() == 1;
  LocalSums sums = sum_local(gradients, alone || shard_group->getRank() == 0);
  if (!alone) reduce(sums, device_of(gradients), *shard_group);
  if (sums.num_nan > 0 || sums.num_bad > 0)
    return {sums.num_nan > 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity(),
            false, gradients.at(static_cast<std::size_t>(sums.first_bad)).name};
  return {std::sqrt(sums.squares.rounded()), true, {}};
}

float clip_factor(double norm, double max_norm) { return static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6))); }

GradNorm clip_grad_norm(const std::vector<NamedGradient>& gradients, double max_norm,
                        const comm::ProcessGroupPtr& shard_group) {
  if (!(max_norm > 0.0))
    fail(ErrorKind::kConfig, "clip_grad_norm: max_norm is {}, expected a number above 0; 0 or less means no clipping.",
         max_norm);
  const GradNorm norm = global_grad_norm(gradients, shard_group);
  const float factor = norm.finite ? clip_factor(norm.norm, max_norm) : 1.0F;
  if (factor == 1.0F) return norm;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> grads;
  grads.reserve(gradients.size());
  for (const auto& gradient : gradients)
    if (gradient.grad.defined() && gradient.grad.numel() > 0) grads.push_back(gradient.grad);
  at::_foreach_mul_(grads, static_cast<double>(factor));
  return norm;
}

}  // namespace lerobot::optim
