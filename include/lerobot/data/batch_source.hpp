#pragma once

#include "lerobot/data/batch.hpp"

namespace lerobot::data {

/// Where the training loop takes its batches from: a Loader, or recorded batches in a test.
///
/// One caller, one thread. A source never ends: epochs follow one another.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// This rank's next batch. Holds the absolute frame numbers as "index" [B].
  /// Throws: Error of the cause, with rank and batch in front, when a batch could not be made.
  virtual Batch next() = 0;

  /// Seconds that the last next() waited.
  [[nodiscard]] virtual double last_wait_s() const = 0;
};

}  // namespace lerobot::data
