#include "lerobot/nn/multihead_attention.hpp"

#include <ATen/autocast_mode.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lerobot/core/error.hpp"
#include "lerobot/nn/dropout.hpp"
#include "nn/attention_node.hpp"

namespace lerobot::nn {

// B batch, Q queries, K keys, D embed_dim, H heads, E = D / H.

MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions options) : options_(options) {
  const std::int64_t dim = options.embed_dim;
  if (options.num_heads < 1 || dim % options.num_heads != 0)
    fail(ErrorKind::kConfig,
         "attention: the model width {} is not divisible by {} heads; choose policy.dim_model and policy.n_heads to "
         "match.",
         dim, options.num_heads);
  in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * dim, dim}));
  in_proj_bias = register_parameter("in_proj_bias", torch::zeros({3 * dim}));
  out_proj = register_module("out_proj", Linear(dim, dim));
  torch::nn::init::xavier_uniform_(in_proj_weight);
  torch::nn::init::zeros_(out_proj->bias);
}

at::Tensor MultiheadAttentionImpl::forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& x_pos,
                                           const at::Tensor& memory_pos,
                                           const std::optional<at::Tensor>& key_padding_mask) {
  const double p = is_training() ? options_.dropout : 0.0;
  if (p < 1.0 && attention_node_applies(x, memory)) {
    // A hooked out_proj (a wrap unit or an adapter of its own) has to run as a module.
    const bool fuse_out_proj = !out_proj->has_hooks();
    const at::Tensor out = attention_node({.x = x,
                                           .memory = memory,
                                           .x_pos = x_pos,
                                           .memory_pos = memory_pos,
                                           .in_weight = in_proj_weight,
                                           .in_bias = in_proj_bias,
                                           .out_weight = fuse_out_proj ? out_proj->weight : at::Tensor(),
                                           .out_bias = fuse_out_proj ? out_proj->bias : at::Tensor(),
                                           .key_padding_mask = key_padding_mask.value_or(at::Tensor())},
                                          {.num_heads = options_.num_heads, .dropout = p});
    return fuse_out_proj ? out : out_proj(out);
  }

  const std::int64_t dim = options_.embed_dim, batch = memory.size(0);
  const auto project = [&](const at::Tensor& input, std::int64_t part) {
    const at::Tensor projected =
        torch::linear(input, in_proj_weight.narrow(0, part * dim, dim), in_proj_bias.narrow(0, part * dim, dim));
    return projected.unflatten(2, {options_.num_heads, -1}).transpose(1, 2);  // [B, H, S, E]
  };
  at::Tensor q_BHQE = project(x_pos.defined() ? x + x_pos : x, 0);
  const at::Tensor k_BHKE = project(memory_pos.defined() ? memory + memory_pos : memory, 1);
  if (q_BHQE.size(0) != batch) q_BHQE = q_BHQE.expand({batch, -1, -1, -1});
  std::optional<at::Tensor> may_attend;
  if (key_padding_mask) may_attend = key_padding_mask->logical_not().unsqueeze(1).unsqueeze(1);  // [B, 1, 1, K]
  const at::Tensor context_BHQE =
      torch::scaled_dot_product_attention(q_BHQE, k_BHKE, project(memory, 2), may_attend, p);
  return out_proj(context_BHQE.transpose(1, 2).flatten(2));
}

at::Tensor MultiheadAttentionImpl::forward_of_one_value(const at::Tensor& value_1D) {
  const std::int64_t dim = options_.embed_dim;
  return out_proj(
      torch::linear(value_1D, in_proj_weight.narrow(0, 2 * dim, dim), in_proj_bias.narrow(0, 2 * dim, dim)));
}

}  // namespace lerobot::nn
