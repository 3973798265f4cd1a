#pragma once

#include "setup.hpp"

namespace lerobot::train {

/// The mean loss over the held-out frames, each counted once, whatever the number of ranks: sum of loss x weight over
/// sum of weights. The policy is in eval mode meanwhile; no random number is drawn.
///
/// Collective: over all ranks.
[[nodiscard]] double held_out_loss(Run& run);

}  // namespace lerobot::train
