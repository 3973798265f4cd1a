#pragma once
// checkpoint: what a run leaves on disk and goes on from. It sees named tensors and JSON, never a policy or optimizer.
//   CheckpointManager      writes a step: complete or not at all; moves `last`; removes old steps
//   CheckpointContents     what one rank puts in
//   resolve_resume_path    from --config_path to the folders of a checkpoint
//   ModelReader            weights, whole or by rows, straight from the mapped file
//   TrainingStateReader    step, random states, optimizer, schedule
#include "lerobot/checkpoint/contents.hpp"
#include "lerobot/checkpoint/layout.hpp"
#include "lerobot/checkpoint/manager.hpp"
#include "lerobot/checkpoint/reader.hpp"
#include "lerobot/checkpoint/rng_state.hpp"
#include "lerobot/checkpoint/training_step.hpp"
