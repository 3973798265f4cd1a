#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <span>

namespace lerobot::comm {

enum class Reduction { kSum, kProduct, kMin, kMax, kBitAnd, kBitOr, kBitXor };

/// What to do with the values of several ranks.
struct ReduceSpec {
  Reduction reduction = Reduction::kSum;
  double factor = 1.0;  ///< each input is multiplied by it first
  int divisor = 1;      ///< the result is divided by it at the end
};

/// Writes to `out` the element-wise reduction of `inputs` (rank order), combined in the order of `tree_reduce`.
///
/// Every inner result is rounded to `dtype`, so that partial results which travelled between groups are the same
/// numbers as inner ones. Sums of bool are a logical or; min and max pass a NaN on. `out` may be one of the inputs.
/// Throws: Error{kComm} for a dtype, or a pair of dtype and reduction, that has no kernel.
void reduce_in_tree_order(c10::ScalarType dtype, const ReduceSpec& spec, std::span<const std::byte* const> inputs,
                          std::byte* out, std::size_t numel);

}  // namespace lerobot::comm
