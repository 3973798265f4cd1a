#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lerobot::mesh {

/// The part of a global tensor that this rank holds: rows [row_begin, row_begin + local.size(0)) of dim 0.
struct TensorSlice {
  at::Tensor local;
  std::vector<std::int64_t> global_shape;
  std::int64_t row_begin = 0;
  bool is_sharded = false;  ///< false: `local` is the whole tensor, equal on all ranks
};

/// Named tensors in a fixed order (registration order), the same on all ranks.
using StateDict = std::vector<std::pair<std::string, TensorSlice>>;

}  // namespace lerobot::mesh
