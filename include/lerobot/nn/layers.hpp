#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "lerobot/nn/hooked.hpp"

namespace lerobot::nn {

// LibTorch's own layers, declared so that they can carry hooks: each can be a wrap unit or take an adapter.
using torch::nn::Conv2dImpl;
using torch::nn::EmbeddingImpl;
using torch::nn::LayerNormImpl;
using torch::nn::LinearImpl;
LEROBOT_MODULE(Conv2d);
LEROBOT_MODULE(Embedding);
LEROBOT_MODULE(LayerNorm);
LEROBOT_MODULE(Linear);

}  // namespace lerobot::nn
