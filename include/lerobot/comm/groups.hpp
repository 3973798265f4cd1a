#pragma once

#include <cstdint>
#include <string>

#include "lerobot/comm/process_group.hpp"

namespace lerobot::comm {

/// The group of the ranks that gave the same `color`, in the order of their ranks in `group`.
///
/// Groups for CPU and for CUDA tensors are split alike. `name` is what messages about lost ranks call it.
///
/// Collective: over `group`.
/// Throws: Error{kComm} when `group` was not made by this library: pass ready sub-groups instead.
[[nodiscard]] ProcessGroupPtr split(const ProcessGroupPtr& group, int color, const std::string& name);

/// A group of this rank alone. Its collectives copy and communicate nothing. Not collective.
[[nodiscard]] ProcessGroupPtr single_rank_group(const std::string& name);

/// Tells the messages about lost ranks which training step runs. No effect on groups not made by this library.
void set_step(c10d::ProcessGroup& group, std::int64_t step);

/// Ends all ranks of the job of `group` with exit code `code`: for a failure that the other ranks do not know of.
/// In `run_ranks` it fails all ranks. For groups not made by this library it aborts the group and throws.
[[noreturn]] void abort_job(c10d::ProcessGroup& group, int code);

/// A phase in which a rank may be waited for longer than the time-out, such as one rank writing a checkpoint.
///
/// While it lives, waits of this process end after max(time-out, `timeout_s`). Every rank that waits for the slow one
/// enters it, and it includes the collective in which they wait, usually a barrier. Phases may nest. Not collective.
class [[nodiscard]] PatientPhase {
 public:
  PatientPhase(ProcessGroupPtr group, const std::string& name, double timeout_s);
  ~PatientPhase();
  PatientPhase(const PatientPhase&) = delete;
  PatientPhase& operator=(const PatientPhase&) = delete;

 private:
  ProcessGroupPtr group_;
};

}  // namespace lerobot::comm
