#pragma once

#include "setup.hpp"

namespace lerobot::train {

/// Writes a checkpoint of the run as it stands.
///
/// Collective: over all ranks.
void save_checkpoint(Run& run);

/// What is left to do after the last step: files for publishing, peak memory.
///
/// Collective: over all ranks.
void finish(Run& run);

}  // namespace lerobot::train
