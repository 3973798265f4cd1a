#pragma once

#include <string>
#include <vector>

#include "lerobot/config/train_config.hpp"

namespace lerobot::config {

/// Checks every setting by itself, and drops negative entries of `dataset.exclude_episodes` with a warning.
///
/// Optimizer and scheduler, which depend on the policy, have checks of their own. Throws: Error{kConfig} with the
/// setting and its value.
void check_settings(TrainConfig& config, std::vector<std::string>& warnings);
void check_settings(const OptimizerConfig& optimizer);
void check_settings(const SchedulerConfig& scheduler);

/// Checks settings against one another. `policy` is set, `parallelism` may still have dp_shard=-1.
/// Throws: Error{kConfig} with both settings and the remedy.
void check_combinations(const TrainConfig& config);

}  // namespace lerobot::config
