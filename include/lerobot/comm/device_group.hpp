#pragma once

#include <c10/core/Device.h>

#include "lerobot/comm/process_group.hpp"

namespace lerobot::comm {

/// A group of the ranks of `cpu_group` for CPU tensors and for tensors on `device`.
///
/// For a CPU device that is `cpu_group` itself. For a CUDA device NCCL carries its tensors, with c10d's watchdog and
/// the same time-out; CPU tensors go where they went before. Parts made by `split` carry both too.
///
/// Collective: over `cpu_group`.
/// Throws: Error{kConfig} when this build has no NCCL, or for devices other than CPU and CUDA with more than one rank.
[[nodiscard]] ProcessGroupPtr make_device_group(const ProcessGroupPtr& cpu_group, c10::Device device,
                                                double timeout_s = 600.0);

/// Whether this build can make groups for CUDA tensors.
[[nodiscard]] bool has_nccl();

}  // namespace lerobot::comm
