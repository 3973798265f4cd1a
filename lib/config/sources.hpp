#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

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

/// The text of one key; nothing when it is absent or null.
[[nodiscard]] std::optional<std::string> text_in(const Json& tokens, const char* key);

/// Runs `step`. An Error about a setting (named in backquotes) that no flag gives gets the name of the file that gave
/// it.
void naming_file(const std::filesystem::path& file, const Arguments& arguments, const std::function<void()>& step);

}  // namespace lerobot::config
