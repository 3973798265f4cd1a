#include "nn/cpu_parts.hpp"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <limits>

#include "nn/parallel.hpp"

namespace lerobot::nn {

void masked_softmax_(at::Tensor& weights, float scale, const at::Tensor& key_mask, std::int64_t heads) {
  weights.mul_(scale);
  if (key_mask.defined())
    weights.unflatten(0, {key_mask.size(0), heads})
        .masked_fill_(key_mask.unsqueeze(1).unsqueeze(1), -std::numeric_limits<double>::infinity());
  at::_softmax_out(weights, weights, -1, /*half_to_float=*/false);
}

void softmax_backward_(at::Tensor& grad, const at::Tensor& weights, float scale) {
  grad = at::_softmax_backward_data(grad, weights, -1, weights.scalar_type());
  grad.mul_(scale);
}

void column_sums_into(const at::Tensor& matrix, const at::Tensor& out) {
  if (matrix.scalar_type() != at::kFloat || matrix.stride(1) != 1) {
    at::Tensor target = out;
    at::sum_out(target, matrix, 0);
    return;
  }
  const std::int64_t rows = matrix.size(0), stride = matrix.stride(0);
  const auto* data = matrix.const_data_ptr<float>();
  auto* sums = out.mutable_data_ptr<float>();
  const std::int64_t columns_per_thread = std::max<std::int64_t>(16, kGrain / std::max<std::int64_t>(1, rows));
  parallel_for(matrix.size(1), columns_per_thread, [&](std::int64_t begin, std::int64_t end) {
    cpu::column_sums(rows, end - begin, stride, data + begin, sums + begin);
  });
}

at::Tensor column_sums(const at::Tensor& matrix) {
  at::Tensor out = at::empty({matrix.size(1)}, matrix.options());
  column_sums_into(matrix, out);
  return out;
}

}  // namespace lerobot::nn
