#pragma once

#include <filesystem>
#include <string>

#include "lerobot/nn/resnet.hpp"

namespace lerobot::policies {

/// The file that `weights` stands for: a path to a .pth or .safetensors file, or one of torchvision's names such as
/// "ResNet18_Weights.IMAGENET1K_V1", whose file is looked up in $TORCH_HOME/hub/checkpoints (default ~/.cache/torch).
///
/// Throws: Error{kConfig} on an unknown name or an absent file; the message says how to go on without one.
[[nodiscard]] std::filesystem::path find_backbone_weights(const std::string& weights);

/// Fills `backbone` from torchvision's file; the classifier's weights (`fc.*`) and `num_batches_tracked` are left out.
///
/// Throws: Error{kConfig} as find_backbone_weights; Error{kCheckpoint} on a damaged file or one of another network.
void load_backbone_weights(nn::ResNetBackbone& backbone, const std::string& weights);

}  // namespace lerobot::policies
