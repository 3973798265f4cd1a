#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <string>

#include "lerobot/formats/json.hpp"
#include "lerobot/policies/act_policy.hpp"
#include "lerobot/processors/tensor_file.hpp"

// The recorded cases of LeRobot (Python) in tests/data/act.
namespace golden {

namespace fs = std::filesystem;
using lerobot::Json;
using lerobot::policies::ACTConfig;
using lerobot::policies::ACTPolicy;
using lerobot::policies::Batch;
using lerobot::processors::TensorMap;

inline fs::path folder(const std::string& name) { return fs::path(LEROBOT_TEST_DATA) / "act" / name; }
inline Json json(const fs::path& path) { return lerobot::formats::read_json(path, lerobot::ErrorKind::kConfig); }
inline TensorMap tensors(const fs::path& path) { return lerobot::processors::read_tensor_file(path); }

/// Value of element `i` of the backbone tensor `name`, by the formula that the recordings were made with.
inline at::Tensor backbone_tensor(const std::string& name, at::IntArrayRef shape) {
  std::uint64_t seed = 0xcbf29ce484222325ULL;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  at::Tensor tensor = at::empty(shape, at::kFloat);
  auto* out = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::uint64_t z = seed + (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    z ^= z >> 31U;
    const double v = 2.0 * (static_cast<double>(z >> 40U) / 16777216.0) - 1.0;
    double value = 0.1 * v;  // bias, running_mean
    if (shape.size() == 4) value = v * std::sqrt(6.0 / static_cast<double>(shape[1] * shape[2] * shape[3]));
    if (shape.size() == 1 && (name.ends_with(".weight") || name.ends_with("running_var"))) value = 1.0 + 0.1 * v;
    out[i] = static_cast<float>(value);
  }
  return tensor;
}

/// Every parameter and buffer by name.
inline std::map<std::string, at::Tensor> state(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> all;
  for (const auto& item : module.named_parameters()) all.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) all.emplace(item.key(), item.value());
  return all;
}

inline ACTPolicy policy(const std::string& name, const Json& overrides = Json::object()) {
  Json config = json(folder(name) / "config.json");
  config.update(overrides);
  ACTPolicy result(ACTConfig::from_json(config));
  const fs::path whole = folder(name) / "model.safetensors";
  TensorMap weights = tensors(fs::exists(whole) ? whole : folder(name) / "model_no_backbone.safetensors");
  const torch::NoGradGuard no_grad;
  for (auto& [key, tensor] : state(*result)) {
    if (key.find(".backbone.") != std::string::npos)
      tensor.copy_(backbone_tensor(key, tensor.sizes()));
    else
      tensor.copy_(weights.at(key));
  }
  return result;
}

inline Batch batch(const fs::path& path) {
  Batch result;
  result.tensors = tensors(path);
  return result;
}

/// Largest |a - b| over the largest |b|.
inline double relative(const at::Tensor& a, const at::Tensor& b) {
  if (b.numel() == 0) return 0.0;
  const double scale = b.abs().max().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() / (scale > 0 ? scale : 1.0);
}
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

}  // namespace golden
