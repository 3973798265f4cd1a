#pragma once

#include <cstdint>
#include <string>

#include "lerobot/config/enums.hpp"
#include "lerobot/log/logger.hpp"
#include "lerobot/optim/clip.hpp"

namespace lerobot::train {

/// Decides what a gradient norm means for the update, the same on every rank since the norm is.
///
/// Returns whether the update may be made. Throws Error{kConfig} with step and first bad parameter under
/// `--on_nonfinite=stop`; under `skip` the update is left out and said.
[[nodiscard]] bool may_update(const optim::GradNorm& norm, config::OnNonfinite policy, std::int64_t step,
                              std::int64_t& num_skipped, log::Logger& logger);

}  // namespace lerobot::train
