#pragma once
// nn: modules that a wrapper can hook, and the layers that policies share.
//   LEROBOT_MODULE, Hooked, Hook   a module whose forward runs attached hooks (wrap units, adapters, checkpointing)
//   Linear, Conv2d, LayerNorm, …   LibTorch's layers as such modules
//   MultiheadAttention, linear, feed_forward, add_dropout_norm   transformer parts, one autograd node each on CPU
//   FusedNode                      for hand-written autograd steps
//   dropout, add_dropout           counter-based masks, no stored mask
//   ResNetBackbone                 torchvision's ResNet with frozen norms
//   sinusoid_1d, sinusoid_2d       position tables
//   NoiseSource                    where a policy takes its normal numbers from
#include "lerobot/nn/dropout.hpp"
#include "lerobot/nn/feed_forward.hpp"
#include "lerobot/nn/fused_node.hpp"
#include "lerobot/nn/hook.hpp"
#include "lerobot/nn/hooked.hpp"
#include "lerobot/nn/layers.hpp"
#include "lerobot/nn/linear.hpp"
#include "lerobot/nn/multihead_attention.hpp"
#include "lerobot/nn/noise.hpp"
#include "lerobot/nn/resnet.hpp"
#include "lerobot/nn/sinusoid.hpp"
#include "lerobot/nn/visit_tensors.hpp"
