#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lerobot::data {

/// How an epoch is cut: `num_frames` frames, batches of `batch_size`, dealt to `dp_world` ranks.
struct BatchLayout {
  std::int64_t num_frames = 0, batch_size = 0, dp_world = 1;

  bool operator==(const BatchLayout&) const = default;
};

/// Where a run stands in the one global order of samples.
struct Progress {
  std::int64_t epoch = 0;
  std::int64_t samples_in_epoch = 0;  ///< positions of this epoch's order already dealt, at most num_frames
  std::int64_t total_samples = 0;     ///< since the start of the run, filler included

  bool operator==(const Progress&) const = default;
};

/// One step of all ranks: positions [begin, begin + batch_size * dp_world) of an epoch's order.
struct Round {
  std::int64_t epoch = 0, begin = 0;

  bool operator==(const Round&) const = default;
};

/// Deals the positions of each epoch's order to ranks. Pure arithmetic: nothing is shuffled here.
///
/// Batch k of an epoch belongs to rank k mod dp_world. Every rank gets equally many full batches; what is missing in
/// the last round is filled from position 0 of the same epoch, cyclically. A run that goes on inside an epoch, also
/// with another layout, deals the rest of that epoch anew.
class BatchPlan {
 public:
  /// Throws: Error{kConfig} when a size is not positive or `start` is outside the epoch.
  explicit BatchPlan(const BatchLayout& layout, const Progress& start = {});

  [[nodiscard]] const BatchLayout& layout() const { return layout_; }
  /// Rounds of a whole epoch: ceil(ceil(num_frames / batch_size) / dp_world).
  [[nodiscard]] std::int64_t rounds_per_epoch() const { return rounds_; }
  /// The n-th step after `start`, n from 0.
  [[nodiscard]] Round round(std::int64_t n) const;
  /// The `batch_size` positions in the epoch's order that `dp_rank` reads in that round.
  [[nodiscard]] std::vector<std::int64_t> positions(const Round& round, std::int64_t dp_rank) const;
  /// Where the run stands when n steps after `start` are done.
  [[nodiscard]] Progress progress(std::int64_t n) const;

 private:
  BatchLayout layout_;
  Progress start_;
  std::int64_t rounds_ = 0;        ///< of a whole epoch
  std::int64_t first_rounds_ = 0;  ///< left in the epoch of `start_`
};

/// Where a run of `step` steps under `layout` stands, for checkpoints that do not record it.
[[nodiscard]] Progress progress_of_step(std::int64_t step, const BatchLayout& layout);

/// One text per quantity (dp_world, batch_size) in which a resume differs from the checkpoint; for the log.
[[nodiscard]] std::vector<std::string> resume_warnings(const BatchLayout& recorded, const BatchLayout& current);

}  // namespace lerobot::data
