#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "comm/collective.hpp"

namespace lerobot::comm {

/// Bytes to or from one peer.
struct Transfer {
  int peer = 0;
  Span span;
};

/// Transfers that may all run at once, and what to do here when they are complete.
struct Stage {
  std::vector<Transfer> receives;
  std::vector<Transfer> sends;
  std::function<void()> then;
};

/// Memory that lives until the end of the collective: (nbytes) -> 64-byte aligned.
using ScratchAllocator = std::function<std::byte*(std::size_t)>;

/// The messages of `collective` on rank `rank` of `num_ranks` > 1, and the sums between them.
///
/// Everything goes straight between the ranks concerned, so an unfinished receive names a rank that did not arrive.
/// A reduction brings each element's operands to one rank, which combines them in tree order: a small all-reduce on
/// every rank, a large one on the rank that owns the chunk. Both give the same bits.
/// `collective` must stay where it is until the last stage is done.
std::vector<Stage> plan_exchange(const Collective& collective, int rank, int num_ranks,
                                 const ScratchAllocator& scratch);

}  // namespace lerobot::comm
