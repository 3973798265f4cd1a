#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lerobot/comm/process_group.hpp"

namespace lerobot::optim {

/// A gradient that counts in the norm. The list has the same names in the same order on every rank.
struct NamedGradient {
  std::string name;         ///< FQN of the parameter
  at::Tensor grad;          ///< this rank's part; undefined: the parameter has no gradient and does not count
  bool is_sharded = false;  ///< `grad` holds this rank's rows; false: the whole gradient, equal on all ranks
};

/// The 2-norm of all gradients as one vector, before clipping; equal on all ranks.
struct GradNorm {
  double norm = 0.0;      ///< infinite or NaN when an element is
  bool finite = true;     ///< every element of every gradient is finite
  std::string first_bad;  ///< when not finite: the first name of the list with such an element on any rank
};

/// Gives the global gradient norm.
///
/// On CPU the squares of float gradients are summed exactly (ExactSum) and rounded once, so the norm is the same to
/// the bit for whole tensors and for shards on any number of ranks. On other devices each tensor is summed in double.
/// Whole gradients are counted by rank 0 of the group.
///
/// Collective: over `shard_group`, one SUM of 560 bytes, and one MIN of 8 bytes when an element is not finite; without
/// a group nothing is sent. Replicas must not be in the group: their gradients are equal already.
/// Source: PyTorch `clip_grad_norm_`. Differs: exact sum; order and layout do not matter.
[[nodiscard]] GradNorm global_grad_norm(const std::vector<NamedGradient>& gradients,
                                        const comm::ProcessGroupPtr& shard_group = {});

/// The factor that clipping multiplies with: min(1, max_norm / (norm + 1e-6)), in float as the gradients are.
[[nodiscard]] float clip_factor(double norm, double max_norm);

/// Multiplies every gradient by `clip_factor` and gives the norm from before.
///
/// Gradients are left alone when the norm is not finite: the caller decides between stopping and skipping the update.
///
/// Collective: as `global_grad_norm`.
/// Throws: Error{kConfig} when `max_norm` is not above 0 (the caller does not clip then).
GradNorm clip_grad_norm(const std::vector<NamedGradient>& gradients, double max_norm,
                        const comm::ProcessGroupPtr& shard_group = {});

}  // namespace lerobot::optim
