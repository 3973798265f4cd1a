#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lerobot::policies {

/// Averages the chunks that overlap at each time step, weighting the i-th oldest by exp(-coefficient * i).
///
/// Source: algorithm 2 of the ACT paper. The average is kept as a running one, so memory is one chunk.
class TemporalEnsembler {
 public:
  TemporalEnsembler(double coefficient, std::int64_t chunk_size);

  /// Takes the chunk [B, C, A] predicted at this step and gives the step's action [B, A].
  [[nodiscard]] at::Tensor update(const at::Tensor& chunk_BCA);
  void reset();

 private:
  at::Tensor weights_C_, weight_sums_C_;  ///< w_i and w_0 + ... + w_i
  at::Tensor average_BSA_;                ///< for the steps ahead
  at::Tensor counts_S1_;                  ///< chunks in each average
};

}  // namespace lerobot::policies
