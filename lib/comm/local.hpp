#pragma once

#include <span>

#include "comm/group_backend.hpp"
#include "comm/work.hpp"

namespace lerobot::comm {

/// The work of a group of one, or of ranks that are threads.
class LocalWork final : public TrackedWork {
 public:
  using TrackedWork::TrackedWork;
};

/// Does at once what all ranks asked for, with the memory of all of them at hand; `all` is in rank order.
/// Throws: Error{kComm} when they disagree on the operation, the dtype or a size.
void run_together(std::span<Collective* const> all);

/// The collective of a group of one: copies, no communication.
WorkPtr run_alone(Collective collective, std::uint64_t sequence);

}  // namespace lerobot::comm
