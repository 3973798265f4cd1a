#pragma once

#include <string>

#include "lerobot/comm/device_group.hpp"

namespace lerobot::comm {

/// Gives `part`, which was split off `group` by `color`, the part of the device backend of `group`, if it has one.
/// Collective: over `group`.
void split_device_backend(c10d::ProcessGroup& group, c10d::ProcessGroup& part, int color, const std::string& name);

}  // namespace lerobot::comm
