#include "lerobot/policies/act_layers.hpp"

#include "lerobot/nn/dropout.hpp"

namespace lerobot::policies {
namespace {

nn::MultiheadAttention attention(const ACTConfig& config) {
  return nn::MultiheadAttention(nn::MultiheadAttentionOptions{
      .embed_dim = config.dim_model, .num_heads = config.n_heads, .dropout = config.dropout});
}

nn::LayerNorm layer_norm(const ACTConfig& config) {
  return nn::LayerNorm(torch::nn::LayerNormOptions({config.dim_model}));
}

}  // namespace

ACTEncoderLayerImpl::ACTEncoderLayerImpl(const ACTConfig& config)
    : pre_norm_(config.pre_norm), activation_(config.feedforward_activation), dropout_(config.dropout) {
  self_attn_ = register_module("self_attn", attention(config));
  linear1_ = register_module("linear1", nn::Linear(config.dim_model, config.dim_feedforward));
  linear2_ = register_module("linear2", nn::Linear(config.dim_feedforward, config.dim_model));
  norm1_ = register_module("norm1", layer_norm(config));
  norm2_ = register_module("norm2", layer_norm(config));
}

at::Tensor ACTEncoderLayerImpl::forward(const at::Tensor& x_BSD, const at::Tensor& pos_SD,
                                        const std::optional<at::Tensor>& padding_BS,
                                        std::optional<std::int64_t> num_tokens) {
  const double p = is_training() ? dropout_ : 0.0;
  const auto first = [&](const at::Tensor& tokens) { return num_tokens ? tokens.narrow(1, 0, *num_tokens) : tokens; };
  const at::Tensor value = pre_norm_ ? norm1_(x_BSD) : x_BSD;
  const at::Tensor first_pos = num_tokens ? pos_SD.narrow(0, 0, *num_tokens) : pos_SD;
  const at::Tensor attended = self_attn_(first(value), value, first_pos, pos_SD, padding_BS);
  if (pre_norm_) {
    const at::Tensor x = nn::add_dropout(first(x_BSD), attended, p);
    return nn::add_dropout(x, nn::feed_forward(norm2_(x), linear1_, linear2_, activation_, p), p);
  }
  const at::Tensor x = nn::add_dropout_norm(first(x_BSD), attended, p, norm1_);
  return nn::add_dropout_norm(x, nn::feed_forward(x, linear1_, linear2_, activation_, p), p, norm2_);
}

ACTEncoderImpl::ACTEncoderImpl(const ACTConfig& config, std::int64_t num_layers) {
  torch::nn::ModuleList list;
  for (std::int64_t i = 0; i < num_layers; ++i) list->push_back(layers_.emplace_back(config).ptr());
  register_module("layers", list);
  if (config.pre_norm) norm_ = register_module("norm", layer_norm(config));
}

at::Tensor ACTEncoderImpl::forward(const at::Tensor& x_BSD, const at::Tensor& pos_SD,
                                   const std::optional<at::Tensor>& padding_BS,
                                   std::optional<std::int64_t> num_tokens) {
  at::Tensor x = x_BSD;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i](x, pos_SD, padding_BS, i + 1 == layers_.size() ? num_tokens : std::nullopt);
  return norm_ ? norm_(x) : x;
}

ACTDecoderLayerImpl::ACTDecoderLayerImpl(const ACTConfig& config)
    : pre_norm_(config.pre_norm), activation_(config.feedforward_activation), dropout_(config.dropout) {
  self_attn_ = register_module("self_attn", attention(config));
  multihead_attn_ = register_module("multihead_attn", attention(config));
  linear1_ = register_module("linear1", nn::Linear(config.dim_model, config.dim_feedforward));
  linear2_ = register_module("linear2", nn::Linear(config.dim_feedforward, config.dim_model));
  norm1_ = register_module("norm1", layer_norm(config));
  norm2_ = register_module("norm2", layer_norm(config));
  norm3_ = register_module("norm3", layer_norm(config));
}

at::Tensor ACTDecoderLayerImpl::forward(const std::optional<at::Tensor>& x_BCD, const at::Tensor& memory_BSD,
                                        const at::Tensor& memory_pos_SD, const at::Tensor& pos_CD) {
  const double p = is_training() ? dropout_ : 0.0;
  const bool one_row = !x_BCD && p == 0.0;  // the self-attention gives the same row [1, 1, D] everywhere
  const std::int64_t batch = memory_BSD.size(0), chunk = pos_CD.size(0), dim = pos_CD.size(1);

  at::Tensor x = x_BCD ? *x_BCD : at::zeros({one_row ? 1 : batch, one_row ? 1 : chunk, dim}, memory_BSD.options());
  const at::Tensor value = pre_norm_ ? norm1_(x) : x;
  at::Tensor attended =
      one_row ? self_attn_->forward_of_one_value(value) : self_attn_(value, value, pos_CD, pos_CD, std::nullopt);
  // One row stands for all tokens and samples: a query [1, C, D], which the cross-attention turns into [B, C, D].
  const auto tokens = [&](const at::Tensor& rows) { return one_row ? rows.expand({1, chunk, dim}) : rows; };
  if (pre_norm_) {
    x = nn::add_dropout(x, attended, p);
    attended = multihead_attn_(tokens(norm2_(x)), memory_BSD, pos_CD, memory_pos_SD, std::nullopt);
    x = nn::add_dropout(x, attended, p);
    return nn::add_dropout(x, nn::feed_forward(norm3_(x), linear1_, linear2_, activation_, p), p);
  }
  x = nn::add_dropout_norm(x, attended, p, norm1_);
  attended = multihead_attn_(tokens(x), memory_BSD, pos_CD, memory_pos_SD, std::nullopt);
  x = nn::add_dropout_norm(x, attended, p, norm2_);
  return nn::add_dropout_norm(x, nn::feed_forward(x, linear1_, linear2_, activation_, p), p, norm3_);
}

ACTDecoderImpl::ACTDecoderImpl(const ACTConfig& config) {
  torch::nn::ModuleList list;
  for (std::int64_t i = 0; i < config.n_decoder_layers; ++i) list->push_back(layers_.emplace_back(config).ptr());
  register_module("layers", list);
  norm_ = register_module("norm", layer_norm(config));
}

at::Tensor ACTDecoderImpl::forward(const at::Tensor& memory_BSD, const at::Tensor& memory_pos_SD,
                                   const at::Tensor& pos_CD) {
  std::optional<at::Tensor> x;
  for (ACTDecoderLayer& layer : layers_) x = layer(x, memory_BSD, memory_pos_SD, pos_CD);
  if (!x) x = at::zeros({memory_BSD.size(0), pos_CD.size(0), pos_CD.size(1)}, memory_BSD.options());
  return norm_(*x);
}

}  // namespace lerobot::policies
