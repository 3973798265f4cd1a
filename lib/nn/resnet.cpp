#include "lerobot/nn/resnet.hpp"

#include <torch/nn/init.h>

#include <array>

#include "lerobot/core/error.hpp"

namespace lerobot::nn {
namespace {

Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t dilation = 1) {
  const std::int64_t padding = kernel == 1 ? 0 : dilation * (kernel / 2);
  return Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding).dilation(dilation).bias(false));
}

torch::nn::Sequential shortcut(const ResNetBlockOptions& options, std::int64_t out_channels) {
  return torch::nn::Sequential(conv(options.in_channels, out_channels, 1, options.stride),
                               FrozenBatchNorm2d(out_channels));
}

}  // namespace

FrozenBatchNorm2dImpl::FrozenBatchNorm2dImpl(std::int64_t num_features)
    : weight(register_buffer("weight", torch::ones({num_features}))),
      bias(register_buffer("bias", torch::zeros({num_features}))),
      running_mean(register_buffer("running_mean", torch::zeros({num_features}))),
      running_var(register_buffer("running_var", torch::ones({num_features}))) {}

at::Tensor FrozenBatchNorm2dImpl::forward(const at::Tensor& x_BCHW) {
  const at::Tensor scale = weight * (running_var + 1e-5).rsqrt();
  const at::Tensor shift = bias - running_mean * scale;
  const std::array<std::int64_t, 4> shape{1, -1, 1, 1};
  return x_BCHW * scale.reshape(shape) + shift.reshape(shape);
}

BasicBlockImpl::BasicBlockImpl(const ResNetBlockOptions& o) {
  if (o.dilation > 1)
    fail(ErrorKind::kConfig,
         "policy.replace_final_stride_with_dilation: resnet18 and resnet34 have no dilated form. Use resnet50 or "
         "larger, "
         "or set it to false.");
  conv1_ = register_module("conv1", conv(o.in_channels, o.width, 3, o.stride));
  bn1_ = register_module("bn1", FrozenBatchNorm2d(o.width));
  conv2_ = register_module("conv2", conv(o.width, o.width, 3, 1));
  bn2_ = register_module("bn2", FrozenBatchNorm2d(o.width));
  if (o.downsample) downsample_ = register_module("downsample", shortcut(o, o.width * kExpansion));
}

at::Tensor BasicBlockImpl::forward(const at::Tensor& x_BCHW) {
  at::Tensor y = bn1_(conv1_(x_BCHW)).relu_();
  y = bn2_(conv2_(y));
  y += downsample_ ? downsample_->forward(x_BCHW) : x_BCHW;
  return y.relu_();
}

BottleneckImpl::BottleneckImpl(const ResNetBlockOptions& o) {
  conv1_ = register_module("conv1", conv(o.in_channels, o.width, 1, 1));
  bn1_ = register_module("bn1", FrozenBatchNorm2d(o.width));
  conv2_ = register_module("conv2", conv(o.width, o.width, 3, o.stride, o.dilation));
  bn2_ = register_module("bn2", FrozenBatchNorm2d(o.width));
  conv3_ = register_module("conv3", conv(o.width, o.width * kExpansion, 1, 1));
  bn3_ = register_module("bn3", FrozenBatchNorm2d(o.width * kExpansion));
  if (o.downsample) downsample_ = register_module("downsample", shortcut(o, o.width * kExpansion));
}

at::Tensor BottleneckImpl::forward(const at::Tensor& x_BCHW) {
  at::Tensor y = bn1_(conv1_(x_BCHW)).relu_();
  y = bn2_(conv2_(y)).relu_();
  y = bn3_(conv3_(y));
  y += downsample_ ? downsample_->forward(x_BCHW) : x_BCHW;
  return y.relu_();
}

namespace {

struct Layout {
  std::string_view name;
  bool bottleneck;
  std::array<std::int64_t, 4> blocks;
};
constexpr std::array kLayouts{
    Layout{"resnet18", false, {2, 2, 2, 2}},  Layout{"resnet34", false, {3, 4, 6, 3}},
    Layout{"resnet50", true, {3, 4, 6, 3}},   Layout{"resnet101", true, {3, 4, 23, 3}},
    Layout{"resnet152", true, {3, 8, 36, 3}},
};

const Layout& layout_of(std::string_view name) {
  for (const Layout& layout : kLayouts)
    if (layout.name == name) return layout;
  fail(ErrorKind::kConfig,
       "policy.vision_backbone: got \"{}\"; expected resnet18, resnet34, resnet50, resnet101 or resnet152.", name);
}

}  // namespace

template <typename Block>
torch::nn::Sequential ResNetBackboneImpl::make_stage(std::int64_t width, std::int64_t blocks, std::int64_t stride,
                                                     bool dilate) {
  using Impl = typename Block::ContainedType;  // the hooked class; kExpansion comes from its base
  const std::int64_t before = dilation_;
  if (dilate) {
    dilation_ *= stride;
    stride = 1;
  }
  const std::int64_t out = width * Impl::kExpansion;
  torch::nn::Sequential stage;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const bool first = i == 0;
    stage->push_back(Block(ResNetBlockOptions{.in_channels = in_channels_,
                                              .width = width,
                                              .stride = first ? stride : 1,
                                              .dilation = first ? before : dilation_,
                                              .downsample = first && (stride != 1 || in_channels_ != out)}));
    in_channels_ = out;
  }
  return stage;
}

ResNetBackboneImpl::ResNetBackboneImpl(std::string_view name, bool dilate_last_stage) {
  const Layout& layout = layout_of(name);
  const auto stage = [&](std::int64_t width, std::int64_t blocks, std::int64_t stride, bool dilate) {
    return layout.bottleneck ? make_stage<Bottleneck>(width, blocks, stride, dilate)
                             : make_stage<BasicBlock>(width, blocks, stride, dilate);
  };
  conv1_ = register_module("conv1", Conv2d(torch::nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)));
  bn1_ = register_module("bn1", FrozenBatchNorm2d(64));
  layer1_ = register_module("layer1", stage(64, layout.blocks[0], 1, false));
  layer2_ = register_module("layer2", stage(128, layout.blocks[1], 2, false));
  layer3_ = register_module("layer3", stage(256, layout.blocks[2], 2, false));
  layer4_ = register_module("layer4", stage(512, layout.blocks[3], 2, dilate_last_stage));
  out_channels_ = in_channels_;
  // torchvision makes a classifier, which we don't have, before it draws the convolutions' weights. Drawing it too
  // keeps the generator in step, so that a seed gives the weights that it gives in Python.
  const torch::nn::Linear classifier(out_channels_, 1000);
  reset_parameters();
}

void ResNetBackboneImpl::reset_parameters() {
  for (const auto& module : modules(/*include_self=*/false))
    if (auto* convolution = module->as<torch::nn::Conv2d>())
      torch::nn::init::kaiming_normal_(convolution->weight, 0.0, torch::kFanOut, torch::kReLU);
}

at::Tensor ResNetBackboneImpl::forward(const at::Tensor& image_BCHW) {
  at::Tensor x = bn1_(conv1_(image_BCHW)).relu_();
  x = torch::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  x = layer1_->forward(x);
  x = layer2_->forward(x);
  x = layer3_->forward(x);
  return layer4_->forward(x);
}

}  // namespace lerobot::nn
