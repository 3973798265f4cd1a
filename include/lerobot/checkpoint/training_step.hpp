#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot::checkpoint {

/// The degrees of a run's layout, resolved.
struct Parallelism {
  std::int64_t dp_replicate = 1;
  std::int64_t dp_shard = 1;
  std::int64_t ring_degree = 1;
  std::int64_t ulysses_degree = 1;
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

/// Where the run stood in its data, counted over all ranks.
struct Progress {
  std::int64_t epoch = 0;
  std::int64_t samples_in_epoch = 0;
  std::int64_t total_samples = 0;
  std::int64_t window_start_step = 0;  ///< loop steps done when the present accumulation window began
  std::int64_t window_start_epoch = 0;             ///< where that window's samples begin, as the first two
  std::int64_t window_start_samples_in_epoch = 0;
  friend bool operator==(const Progress&, const Progress&) = default;
};

/// Content of training_step.json. Fields that older files do not have are none.
struct TrainingStep {
  std::int64_t step = 0;  ///< loop steps done: micro-batches per rank, not updates
  std::optional<std::int64_t> dp_world_size = {};
  std::optional<std::int64_t> batch_size = {};
  std::optional<std::int64_t> grad_accum_steps = {};
  std::optional<std::string> mixed_precision = {};
  std::optional<Parallelism> parallelism = {};
  std::optional<Progress> progress = {};
};

/// The file's JSON, keys in the order of LeRobot (Python); `progress` comes last, and LeRobot (Python) ignores it.
[[nodiscard]] Json to_json(const TrainingStep& value);

/// Reads the JSON with the fallbacks for files of older versions: `num_processes`, `precision`, missing keys.
///
/// Throws: Error{kCheckpoint} naming `where`, the key and the value when `step` is missing or a kind is wrong.
[[nodiscard]] TrainingStep training_step_from_json(const Json& json, std::string_view where);

/// "key: old -> new" for every recorded setting that differs; unknown values on either side are silent.
[[nodiscard]] std::vector<std::string> differing_settings(const TrainingStep& saved, const TrainingStep& now);

}  // namespace lerobot::checkpoint
