#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lerobot::nn {

/// Tensors of one attention call; undefined positions, mask or output projection are left out.
struct AttentionTensors {
  at::Tensor x, memory, x_pos, memory_pos;
  at::Tensor in_weight, in_bias, out_weight, out_bias;
  at::Tensor key_padding_mask;
};
struct AttentionSettings {
  std::int64_t num_heads = 1;
  double dropout = 0.0;  ///< 0 outside training
};

/// True on CPU in float32 or bfloat16, or when CPU autocast makes it so.
[[nodiscard]] bool attention_node_applies(const at::Tensor& x, const at::Tensor& memory);

/// Projections, attention and output projection as one autograd node: [B, Q, D].
[[nodiscard]] at::Tensor attention_node(const AttentionTensors& tensors, const AttentionSettings& settings);

}  // namespace lerobot::nn
