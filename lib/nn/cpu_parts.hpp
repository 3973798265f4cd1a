#pragma once

#include <ATen/core/Tensor.h>

#include "nn/cpu_kernels.hpp"

// What the hand-written CPU nodes are put together from. No autograd.
namespace lerobot::nn {

/// Elements below which a loop is not split over threads.
inline constexpr std::int64_t kGrain = 1 << 16;

/// weights = softmax(scale * weights) over the last dim, in place. Shapes: weights [B * H, Q, K] contiguous;
/// `key_mask` [B, K], true = no weight, or undefined.
void masked_softmax_(at::Tensor& weights, float scale, const at::Tensor& key_mask, std::int64_t heads);

/// grad = scale * weights * (grad - sum over the last dim of grad * weights).
void softmax_backward_(at::Tensor& grad, const at::Tensor& weights, float scale);

/// x with the dropout mask applied, as a new contiguous tensor.
[[nodiscard]] at::Tensor apply_mask(const cpu::DropoutMask& mask, const at::Tensor& x);

/// The sum over the rows of a matrix, as the gradient of a bias.
[[nodiscard]] at::Tensor column_sums(const at::Tensor& matrix);
/// The same into `out`, a contiguous vector.
void column_sums_into(const at::Tensor& matrix, const at::Tensor& out);

}  // namespace lerobot::nn
