#pragma once

#include <torch/nn/cloneable.h>

#include <cstdint>
#include <optional>

#include "lerobot/nn/layers.hpp"

namespace lerobot::nn {

struct MultiheadAttentionOptions {
  std::int64_t embed_dim = 0;
  std::int64_t num_heads = 1;
  double dropout = 0.0;  ///< on the attention weights, in training mode only
};

// B batch, Q queries, K keys, D embed_dim, H heads.

/// Multi-head attention with torch.nn.MultiheadAttention's parameters, batch first, without averaged weights.
///
/// Parameters: in_proj_weight [3 D, D] and in_proj_bias [3 D] with the rows of q, k and v in that order,
/// out_proj.weight [D, D], out_proj.bias [D]; initial values drawn in the order of torch.nn.MultiheadAttention.
class MultiheadAttentionImpl : public torch::nn::Module {
 public:
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options);

  /// Attention [B, Q, D] of the queries x + x_pos over the keys memory + memory_pos with the values memory.
  ///
  /// Self-attention is x = memory (the same tensor) with x_pos = memory_pos; then the sum and its projections are made
  /// once. Positions may be undefined.
  /// Shapes: x [B, Q, D], or [1, Q, D], which holds for the whole batch; memory [B, K, D]; x_pos [Q, D], memory_pos
  /// [K, D]. `key_padding_mask` [B, K]: true marks a key that nobody attends to; at least one key per row is false.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& x_pos,
                     const at::Tensor& memory_pos, const std::optional<at::Tensor>& key_padding_mask);

  /// What forward gives when every value is the same row `value_1D` [1, D] and no weight is dropped: a row [1, D],
  /// since the weights of one query sum to 1. Query and key rows of the projection keep a zero gradient.
  at::Tensor forward_of_one_value(const at::Tensor& value_1D);

  [[nodiscard]] const MultiheadAttentionOptions& options() const { return options_; }

  at::Tensor in_proj_weight;
  at::Tensor in_proj_bias;
  Linear out_proj{nullptr};

 private:
  MultiheadAttentionOptions options_;
};
LEROBOT_MODULE(MultiheadAttention);

}  // namespace lerobot::nn
