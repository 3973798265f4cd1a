#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lerobot/nn/feed_forward.hpp"
#include "lerobot/nn/layers.hpp"
#include "lerobot/nn/multihead_attention.hpp"
#include "lerobot/policies/act_config.hpp"

// B batch, S encoder tokens, C decoder tokens (chunk), D model width.
namespace lerobot::policies {

/// One transformer encoder layer, post-norm or pre-norm.
class ACTEncoderLayerImpl : public torch::nn::Module {
 public:
  explicit ACTEncoderLayerImpl(const ACTConfig& config);

  /// Tokens after the layer [B, S, D], or, with `num_tokens`, the first so many only: the others then are keys and
  /// values but are not computed further, which is all that a last layer needs when only those are read.
  at::Tensor forward(const at::Tensor& x_BSD, const at::Tensor& pos_SD, const std::optional<at::Tensor>& padding_BS,
                     std::optional<std::int64_t> num_tokens);

 private:
  bool pre_norm_;
  nn::Activation activation_;
  double dropout_;
  nn::MultiheadAttention self_attn_{nullptr};
  nn::Linear linear1_{nullptr}, linear2_{nullptr};
  nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
};
LEROBOT_MODULE(ACTEncoderLayer);

/// A stack of encoder layers, with a norm behind it only in pre-norm.
class ACTEncoderImpl : public torch::nn::Module {
 public:
  ACTEncoderImpl(const ACTConfig& config, std::int64_t num_layers);

  /// As ACTEncoderLayerImpl::forward; `num_tokens` holds for the last layer.
  at::Tensor forward(const at::Tensor& x_BSD, const at::Tensor& pos_SD, const std::optional<at::Tensor>& padding_BS,
                     std::optional<std::int64_t> num_tokens);

 private:
  std::vector<ACTEncoderLayer> layers_;
  nn::LayerNorm norm_{nullptr};
};
LEROBOT_MODULE(ACTEncoder);

/// One transformer decoder layer, post-norm or pre-norm.
class ACTDecoderLayerImpl : public torch::nn::Module {
 public:
  explicit ACTDecoderLayerImpl(const ACTConfig& config);

  /// Tokens after the layer [B, C, D]. Without `x_BCD` the input is all zeros, as for the first layer.
  ///
  /// Zeros all have the same value projection, so without dropout the self-attention of the first layer is one row,
  /// whatever the weights are; it and what depends on it alone are then computed once for all tokens and samples.
  /// `memory_BSD` is the encoder's output, `memory_pos_SD` its positions.
  at::Tensor forward(const std::optional<at::Tensor>& x_BCD, const at::Tensor& memory_BSD,
                     const at::Tensor& memory_pos_SD, const at::Tensor& pos_CD);

 private:
  bool pre_norm_;
  nn::Activation activation_;
  double dropout_;
  nn::MultiheadAttention self_attn_{nullptr}, multihead_attn_{nullptr};
  nn::Linear linear1_{nullptr}, linear2_{nullptr};
  nn::LayerNorm norm1_{nullptr}, norm2_{nullptr}, norm3_{nullptr};
};
LEROBOT_MODULE(ACTDecoderLayer);

/// A stack of decoder layers that starts from zeros, and a norm.
class ACTDecoderImpl : public torch::nn::Module {
 public:
  explicit ACTDecoderImpl(const ACTConfig& config);

  /// [B, C, D] from the encoder's output and the positions of both sides.
  at::Tensor forward(const at::Tensor& memory_BSD, const at::Tensor& memory_pos_SD, const at::Tensor& pos_CD);

 private:
  std::vector<ACTDecoderLayer> layers_;
  nn::LayerNorm norm_{nullptr};
};
LEROBOT_MODULE(ACTDecoder);

}  // namespace lerobot::policies
