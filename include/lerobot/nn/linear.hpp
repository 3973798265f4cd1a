#pragma once

#include "lerobot/nn/layers.hpp"

namespace lerobot::nn {

/// layer(x), as one autograd node on CPU. Hooks of `layer` run.
[[nodiscard]] at::Tensor linear(const at::Tensor& x, Linear& layer);

}  // namespace lerobot::nn
