#pragma once

#include "lerobot/policies/registry.hpp"

namespace lerobot::policies {

/// Everything that is known of ACT without building it: its settings, their checks, its training preset, its wrap
/// units.
///
/// `make` is empty; `built_in_policies()` sets it. Torch-free.
/// Source: LeRobot (Python) `ACTConfig`. Differs: `dim_model` that `n_heads` does not divide, and an unknown
/// activation, are refused here and not by the first layer.
[[nodiscard]] PolicyType act_type();

}  // namespace lerobot::policies
