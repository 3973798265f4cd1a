#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lerobot/processors/tensor_file.hpp"

namespace lerobot::policies {

/// Names that a file and a module do not share, both sorted.
struct LoadReport {
  std::vector<std::string> missing;     ///< in the module, not in the file
  std::vector<std::string> unexpected;  ///< in the file, not in the module
  [[nodiscard]] bool is_complete() const { return missing.empty() && unexpected.empty(); }
  /// One line for the log per kind of difference.
  [[nodiscard]] std::vector<std::string> warnings() const;
};

enum class Strictness { kWarn, kStrict };

/// Copies the tensors of a safetensors file into the parameters and buffers of the same name, converting their type.
///
/// Nothing is copied when it throws. Throws: Error{kCheckpoint} when a shape differs, and with kStrict on missing or
/// unexpected names; one message lists all missing, unexpected and mis-shaped tensors.
LoadReport load_weights(torch::nn::Module& module, const std::filesystem::path& path,
                        Strictness strictness = Strictness::kWarn);
/// The same from tensors in memory; `where` names them in messages.
LoadReport load_weights(torch::nn::Module& module, const processors::TensorMap& tensors, const std::string& where,
                        Strictness strictness = Strictness::kWarn);

/// Writes every parameter and buffer as LeRobot's model.safetensors. A tensor with two names is written once, and its
/// other names stand in the metadata. Throws: Error{kCheckpoint}.
std::vector<formats::StoredRange> save_weights(const torch::nn::Module& module, const std::filesystem::path& path);

}  // namespace lerobot::policies
