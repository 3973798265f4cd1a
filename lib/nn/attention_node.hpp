#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lerobot::nn {

/// Tensors of one attention call; an undefined mask or output projection is left out.
struct AttentionTensors {
  at::Tensor query, key, value, key_padding_mask;
  at::Tensor in_weight, in_bias, out_weight, out_bias;
};
struct AttentionSettings {
  std::int64_t num_heads = 1;
  double dropout = 0.0;  ///< 0 outside training
};

/// True on CPU in float32 or bfloat16, or when CPU autocast makes it so.
[[nodiscard]] bool attention_node_applies(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// Projections, attention and output projection as one autograd node: [B, Q, D].
[[nodiscard]] at::Tensor attention_node(const AttentionTensors& tensors, const AttentionSettings& settings);

}  // namespace lerobot::nn
