#pragma once

#include <functional>

#include "lerobot/comm/process_group.hpp"

namespace lerobot::comm {

/// Runs `body(group, rank)` on `num_ranks` threads that form one group "world": a job of many ranks in a unit test.
///
/// The group does what a group over MPI does, with the same order of sums, and can be split. When a rank throws, or
/// ends while others wait for it in a collective, those collectives fail on all ranks, so that nothing hangs; then the
/// first exception is thrown here.
///
/// Threads share one default random generator: seed and draw before, or use a generator per rank.
void run_ranks(int num_ranks, const std::function<void(const ProcessGroupPtr& group, int rank)>& body);

}  // namespace lerobot::comm
