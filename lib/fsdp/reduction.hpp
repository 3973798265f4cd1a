#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "fsdp/param_group.hpp"
#include "lerobot/fsdp/options.hpp"

namespace lerobot::fsdp {

/// By what gradients are divided before and after a sum over `num_ranks`, to be the mean.
///
/// float16 overflows in a sum of undivided and loses digits in a sum of fully divided terms, so the division is split:
/// before by the largest power of two that divides `num_ranks` and is at most about its root. Other types let the
/// collective average.
struct DivideFactors {
  double before = 1;
  double after = 1;
  bool by_collective = true;
};
[[nodiscard]] constexpr DivideFactors divide_factors(at::ScalarType reduce_dtype, int num_ranks) {
  if (reduce_dtype != at::kHalf) return {};
  int before = 1;
  while (num_ranks % before == 0 && num_ranks / before > before) before *= 2;
  return {static_cast<double>(before), static_cast<double>(num_ranks) / before, false};
}
static_assert(divide_factors(at::kHalf, 2).before == 2 && divide_factors(at::kHalf, 2).after == 1);
static_assert(divide_factors(at::kHalf, 3).before == 2 && divide_factors(at::kHalf, 3).after == 1.5);
static_assert(divide_factors(at::kHalf, 6).before == 4 && divide_factors(at::kHalf, 6).after == 1.5);
static_assert(divide_factors(at::kHalf, 8).before == 4 && divide_factors(at::kHalf, 8).after == 2);

/// The gradients of one unit on their way to the shards.
///
/// The constructor packs them, frees the whole ones and issues the reduce-scatter. Then, each once and in this order:
/// `finish_scatter()`, which frees the packed form and issues the all-reduce over replicas, and `finish()`.
class Reduction {
 public:
  Reduction(ParamGroup& group, const ShardGroups& groups);

  void finish_scatter();
  /// Adds the means to the gradients of the shards.
  void finish();
  /// Waits for what is under way and forgets it. Never throws.
  void abandon() noexcept;

 private:
  ShardGroups groups_;
  std::vector<ShardedParam*> params_;
  SlabLayout layout_;
  at::ScalarType dtype_ = at::kFloat;
  DivideFactors factors_;
  at::Tensor packed_;  ///< a slab for every rank
  at::Tensor mine_;    ///< the sum for this rank
  comm::WorkPtr work_;
};

}  // namespace lerobot::fsdp
