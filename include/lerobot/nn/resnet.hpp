#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "lerobot/nn/layers.hpp"

namespace lerobot::nn {

/// Batch norm with fixed statistics: four buffers and no parameter, the same in training and evaluation.
///
/// Buffers weight, bias, running_mean, running_var [C]; y = x * s + (bias - running_mean * s),
/// s = weight / sqrt(running_var + 1e-5). Source: torchvision.ops.FrozenBatchNorm2d.
class FrozenBatchNorm2dImpl : public torch::nn::Module {
 public:
  explicit FrozenBatchNorm2dImpl(std::int64_t num_features);
  at::Tensor forward(const at::Tensor& x_BCHW);

  at::Tensor weight, bias, running_mean, running_var;
};
LEROBOT_MODULE(FrozenBatchNorm2d);

struct ResNetBlockOptions {
  std::int64_t in_channels = 0;
  std::int64_t width = 0;  ///< channels of the 3x3 convolutions
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  bool downsample = false;  ///< a 1x1 convolution on the shortcut
};

/// Two 3x3 convolutions and a shortcut (ResNet-18, 34).
class BasicBlockImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 1;
  explicit BasicBlockImpl(const ResNetBlockOptions& options);
  at::Tensor forward(const at::Tensor& x_BCHW);

 private:
  Conv2d conv1_{nullptr};
  FrozenBatchNorm2d bn1_{nullptr};
  Conv2d conv2_{nullptr};
  FrozenBatchNorm2d bn2_{nullptr};
  torch::nn::Sequential downsample_{nullptr};
};
LEROBOT_MODULE(BasicBlock);

/// 1x1, 3x3, 1x1 convolutions and a shortcut (ResNet-50 and up); the stride is in the 3x3 one.
class BottleneckImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 4;
  explicit BottleneckImpl(const ResNetBlockOptions& options);
  at::Tensor forward(const at::Tensor& x_BCHW);

 private:
  Conv2d conv1_{nullptr};
  FrozenBatchNorm2d bn1_{nullptr};
  Conv2d conv2_{nullptr};
  FrozenBatchNorm2d bn2_{nullptr};
  Conv2d conv3_{nullptr};
  FrozenBatchNorm2d bn3_{nullptr};
  torch::nn::Sequential downsample_{nullptr};
};
LEROBOT_MODULE(Bottleneck);

/// A ResNet without pooling and classifier: image [B, 3, H, W] -> features [B, out_channels, H/32, W/32].
///
/// Names as torchvision's: conv1, bn1, layer1..4.<i>.{conv,bn}<j>, layer<l>.0.downsample.{0,1}. Every norm is frozen.
class ResNetBackboneImpl : public torch::nn::Module {
 public:
  /// `name`: resnet18, 34, 50, 101 or 152. `dilate_last_stage` keeps the map of layer3 and dilates layer4 instead.
  /// Throws: Error{kConfig} on another name, or dilation with resnet18 or 34.
  ResNetBackboneImpl(std::string_view name, bool dilate_last_stage);
  at::Tensor forward(const at::Tensor& image_BCHW);
  [[nodiscard]] std::int64_t out_channels() const { return out_channels_; }

 private:
  template <typename Block>
  torch::nn::Sequential make_stage(std::int64_t width, std::int64_t blocks, std::int64_t stride, bool dilate);
  void reset_parameters();

  Conv2d conv1_{nullptr};
  FrozenBatchNorm2d bn1_{nullptr};
  torch::nn::Sequential layer1_{nullptr}, layer2_{nullptr}, layer3_{nullptr}, layer4_{nullptr};
  std::int64_t in_channels_ = 64;
  std::int64_t dilation_ = 1;
  std::int64_t out_channels_ = 0;
};
LEROBOT_MODULE(ResNetBackbone);

}  // namespace lerobot::nn
