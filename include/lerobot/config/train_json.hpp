#pragma once

#include <filesystem>

#include "lerobot/config/schema.hpp"
#include "lerobot/config/train_config.hpp"
#include "lerobot/core/json.hpp"

namespace lerobot::config {

/// The content of `train_config.json`, keys in LeRobot's (Python) order.
///
/// Keys that LeRobot 0.6.2 does not know (`tf32`, `trackio`, `accelerator.grad_scaler`,
/// `accelerator.fsdp.mixed_precision_policy`) are left out while they are at their default, so that it can load the
/// file. Write it with `formats::dump_python(json, 4, true)`.
[[nodiscard]] Json to_json(const TrainConfig& config);

/// The config that a decoded `train_config.json` holds. Inverse of to_json, apart from `run`.
///
/// `where` names the file in messages. Cross-field checks are not made here.
/// Throws: Error{kConfig} for unknown keys, values that do not decode, missing required keys.
[[nodiscard]] TrainConfig train_config_from_json(const Json& json, const policies::Registry& registry,
                                                 const std::filesystem::path& where);

/// The same from a file.
[[nodiscard]] TrainConfig read_train_config(const std::filesystem::path& path, const policies::Registry& registry);

/// The content of `training_state/run_settings.json`.
[[nodiscard]] Json to_json(const RunSettings& settings);

}  // namespace lerobot::config
