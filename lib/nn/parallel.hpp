#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace lerobot::nn {

/// Runs body(begin, end) over parts of [0, n) of at least `grain`, on LibTorch's threads.
///
/// at::parallel_for is serial in code compiled without OpenMP, as ours is; this borrows the parallel loop that is
/// compiled into LibTorch.
void parallel_for(std::int64_t n, std::int64_t grain, c10::function_ref<void(std::int64_t, std::int64_t)> body);

}  // namespace lerobot::nn
