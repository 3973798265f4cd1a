#pragma once

#include <filesystem>

#include "arguments.hpp"
#include "lerobot/config/parse_train.hpp"

namespace lerobot::config {

/// The checkpoint whose `pretrained_model/train_config.json` is `config_file`. A link such as `last` is followed,
/// because it moves on while the resumed run writes checkpoints.
[[nodiscard]] std::filesystem::path checkpoint_of(const std::filesystem::path& config_file);

/// Adds what `training_state/run_settings.json` of the checkpoint holds, where there is one, to the tokens of its file.
void add_run_settings(Json& file, const std::filesystem::path& checkpoint);

/// Fills `result.overrides` with what flags changed against the checkpoint's file, and warns where the checkpoint's
/// state decides all the same.
void list_overrides(const Json& file, const std::filesystem::path& source, const std::vector<Node>& schema,
                    const Arguments& arguments, ParsedTrain& result);

}  // namespace lerobot::config
