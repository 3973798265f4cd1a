#pragma once

#include <ATen/core/Tensor.h>

#include "nn/cpu_kernels.hpp"

// Pieces of attention on CPU for sequences too long for the one-pass kernel. No autograd.
namespace lerobot::nn {

/// weights = softmax(scale * weights) over the last dim, in place. Shapes: weights [B * H, Q, K] contiguous;
/// `key_mask` [B, K], true = no weight, or undefined.
void masked_softmax_(at::Tensor& weights, float scale, const at::Tensor& key_mask, std::int64_t heads);

/// grad = scale * weights * (grad - sum over the last dim of grad * weights), in place.
void softmax_backward_(at::Tensor& grad, const at::Tensor& weights, float scale);

/// x with the dropout mask applied, as a new contiguous tensor.
[[nodiscard]] at::Tensor apply_mask(const cpu::DropoutMask& mask, const at::Tensor& x);

}  // namespace lerobot::nn
