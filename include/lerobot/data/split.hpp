#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lerobot/data/dataset.hpp"

namespace lerobot::data {

struct EpisodeSplit {
  std::vector<std::int64_t> train, eval;
};

/// Holds out the last ceil(n * eval_split) of the n episodes of each task (an episode's first); `episodes` are the
/// selected ones in the order given, which both halves keep task by task.
///
/// Throws: Error{kConfig} for a share outside [0, 1), or when it leaves 0 training episodes.
[[nodiscard]] EpisodeSplit split_episodes(const std::vector<Episode>& all, std::span<const std::int64_t> episodes,
                                          double eval_split);

/// Positions of the frames that a held-out evaluation reads: all of them for max_samples = 0, else the first
/// max(1, max_samples / tasks) frames of each task.
[[nodiscard]] std::vector<std::int64_t> eval_positions(const Dataset& dataset, std::int64_t max_samples);

}  // namespace lerobot::data
