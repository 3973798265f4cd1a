#pragma once

#include "setup.hpp"

namespace lerobot::train {

/// The lines that open a run: where it writes, how much there is to do, what one step consumes, how large the policy
/// is. Source: LeRobot (Python), same lines in the same order.
void print_banner(const Run& run);

}  // namespace lerobot::train
