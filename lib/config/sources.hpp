#pragma once

#include <filesystem>
#include <utility>

#include "arguments.hpp"
#include "lerobot/config/schema.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/core/json.hpp"

namespace lerobot::config {

/// The file that `--config_path` means: itself, or the `train_config.json` in a folder or in its `pretrained_model/`.
/// Throws Error{kConfig} with the path.
[[nodiscard]] std::filesystem::path locate_config(const std::filesystem::path& config_path);

/// The tokens of a JSON or YAML file, which must hold a map. Throws Error{kConfig} with the path.
[[nodiscard]] Json read_tokens(const std::filesystem::path& file);

/// The tokens of a policy's folder. Throws Error{kConfig} when it has no `config.json`.
[[nodiscard]] Json read_policy_tokens(const std::filesystem::path& folder);

/// Takes the sampling keys of old files (`use_rabc`, `rabc_*`) out, into a `sample_weighting` block where they were on.
void drop_old_keys(Json& tokens);

/// Lays `top` over `base`: maps key by key, all else whole.
void overlay(Json& base, const Json& top);

/// Lays one flag over the tokens of all settings.
void apply_flag(Json& tokens, const Flag& flag, const std::vector<Node>& schema);

/// Runs `step` and adds the name of the file to an Error that it throws.
template <typename Step>
auto in_file(const std::filesystem::path& file, Step&& step) {
  try {
    return step();
  } catch (const Error& error) {
    throw Error(error.kind(), std::string(error.what()) + " (in " + file.string() + ")");
  }
}

}  // namespace lerobot::config
