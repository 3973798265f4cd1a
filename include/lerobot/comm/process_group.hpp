#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace lerobot::comm {

/// Every group in the library is a c10d group, so downstream code can pass its own.
using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

}  // namespace lerobot::comm
