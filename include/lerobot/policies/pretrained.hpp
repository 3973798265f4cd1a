#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lerobot/policies/policy.hpp"
#include "lerobot/policies/registry.hpp"
#include "lerobot/policies/weights.hpp"

namespace lerobot::policies {

/// A policy read from a folder.
struct Pretrained {
  std::shared_ptr<Policy> policy;     ///< in eval mode, on the device of its config
  Json config;                        ///< every setting present
  std::vector<std::string> warnings;  ///< for the log: names that differ, a device that is not here
};

/// Reads `<directory>/config.json` and `<directory>/model.safetensors`; `overrides` replace settings of the file.
///
/// A stored device that this machine lacks gives a warning and the best one that is here: cuda, mps, xpu, cpu.
/// Throws: Error{kCheckpoint} when a file is missing or damaged ("config.json not found in …", "missing type"), weights
///         have other shapes, or with kStrict other names; Error{kUsage} on an unknown type; Error{kConfig} on an
///         unknown or wrong setting.
[[nodiscard]] Pretrained from_pretrained(const std::filesystem::path& directory, const Registry& registry,
                                         const Json& overrides = Json::object(),
                                         Strictness strictness = Strictness::kWarn);

/// Writes `config` as config.json and the weights as model.safetensors. Not collective. Throws: Error{kCheckpoint}.
void save_pretrained(const Policy& policy, const Json& config, const std::filesystem::path& directory);

}  // namespace lerobot::policies
