#include "lerobot/policies/backbone_weights.hpp"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/policies/weights.hpp"

namespace lerobot::policies {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kFiles{
    {{"ResNet18_Weights.IMAGENET1K_V1", "resnet18-f37072fd.pth"},
     {"ResNet34_Weights.IMAGENET1K_V1", "resnet34-b627a593.pth"},
     {"ResNet50_Weights.IMAGENET1K_V1", "resnet50-0676ba61.pth"},
     {"ResNet50_Weights.IMAGENET1K_V2", "resnet50-11ad3fa6.pth"},
     {"ResNet101_Weights.IMAGENET1K_V1", "resnet101-63fe2227.pth"},
     {"ResNet101_Weights.IMAGENET1K_V2", "resnet101-cd907fc2.pth"},
     {"ResNet152_Weights.IMAGENET1K_V1", "resnet152-394f9c45.pth"},
     {"ResNet152_Weights.IMAGENET1K_V2", "resnet152-f82ba261.pth"}}};

constexpr std::string_view kRemedy =
    "Set --policy.pretrained_backbone_weights=null to start from random weights, or give the path of a .pth or "
    ".safetensors file.";

std::filesystem::path torch_home() {
  if (const char* home = std::getenv("TORCH_HOME")) return home;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(cache) / "torch";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : ".") / ".cache" / "torch";
}

}  // namespace

std::filesystem::path find_backbone_weights(const std::string& weights) {
  for (const auto& [name, file] : kFiles) {
    if (weights != name) continue;
    const std::filesystem::path path = torch_home() / "hub" / "checkpoints" / file;
    if (!std::filesystem::exists(path))
      fail(ErrorKind::kConfig, "policy.pretrained_backbone_weights: \"{}\" is not here: {} was not found. {}", weights,
           path.string(), kRemedy);
    return path;
  }
  const std::filesystem::path path = weights;
  if (path.extension() != ".pth" && path.extension() != ".safetensors")
    fail(ErrorKind::kConfig,
         "policy.pretrained_backbone_weights: got \"{}\"; expected a name such as ResNet18_Weights.IMAGENET1K_V1. {}",
         weights, kRemedy);
  if (!std::filesystem::exists(path))
    fail(ErrorKind::kConfig, "policy.pretrained_backbone_weights: {} was not found. {}", path.string(), kRemedy);
  return path;
}

void load_backbone_weights(nn::ResNetBackbone& backbone, const std::string& weights) {
  const std::filesystem::path path = find_backbone_weights(weights);
  processors::TensorMap tensors = processors::read_tensor_file(path);
  std::erase_if(tensors, [](const auto& entry) {
    return entry.first.starts_with("fc.") || entry.first.ends_with("num_batches_tracked");
  });
  load_weights(*backbone, tensors, path.string(), Strictness::kStrict);
}

}  // namespace lerobot::policies
