#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lerobot/log/logger.hpp"

namespace lerobot::data {

/// The seed of one epoch's permutation: the first 64-bit word of NumPy's SeedSequence([seed, epoch]).
[[nodiscard]] std::uint64_t epoch_seed(std::uint64_t seed, std::uint64_t epoch);

struct SamplerOptions {
  std::optional<std::vector<std::int64_t>> episodes = {};  ///< none: all
  std::int64_t drop_n_first_frames = 0;
  std::int64_t drop_n_last_frames = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
};

/// Which frames an epoch visits, and in which order: a pure function of (seed, epoch), so that all ranks agree
/// without a word and a resume goes on where the run stopped.
///
/// Memory: two integers per episode. An epoch's order is made on request.
class EpisodeAwareSampler {
 public:
  /// `from` and `to` bound each episode, half-open, in absolute frame numbers.
  /// An episode that the drops leave empty is passed over with a warning.
  /// Throws: Error{kConfig} for a negative drop, bounds of unequal length, an unknown episode, or no frame left.
  EpisodeAwareSampler(std::span<const std::int64_t> from, std::span<const std::int64_t> to,
                      const SamplerOptions& options, log::Logger& logger);

  /// Frames in an epoch.
  [[nodiscard]] std::int64_t num_frames() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Absolute number of the `i`-th kept frame, in episode order.
  [[nodiscard]] std::int64_t frame(std::int64_t i) const;
  /// The order of an epoch: [num_frames] int64, numbers for `frame()`. The global random state is not touched.
  [[nodiscard]] at::Tensor order(std::int64_t epoch) const;

 private:
  std::vector<std::int64_t> starts_;  ///< first kept frame of each episode
  std::vector<std::int64_t> ends_;    ///< kept frames up to and including each episode
  bool shuffle_;
  std::uint64_t seed_;
};

}  // namespace lerobot::data
