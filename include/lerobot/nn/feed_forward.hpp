#pragma once

#include <string_view>

#include "lerobot/nn/layers.hpp"

namespace lerobot::nn {

enum class Activation { kRelu, kGelu, kGlu };

/// Reads "relu", "gelu" (the exact form, with erf) or "glu". Throws Error{kConfig} on anything else.
[[nodiscard]] Activation parse_activation(std::string_view name);

/// linear2(dropout(activation(linear1(x)), p)): the feed-forward part of a transformer layer.
///
/// `p` is 0 outside training. glu halves the width in front of `linear2`.
[[nodiscard]] at::Tensor feed_forward(const at::Tensor& x, Linear& linear1, Linear& linear2, Activation activation,
                                      double p);

/// norm(residual + dropout(x, p)): the end of a block of a post-norm transformer layer. Same shapes.
[[nodiscard]] at::Tensor add_dropout_norm(const at::Tensor& residual, const at::Tensor& x, double p, LayerNorm& norm);

}  // namespace lerobot::nn
