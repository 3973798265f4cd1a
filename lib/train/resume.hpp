#pragma once

#include <memory>
#include <string>

#include "setup.hpp"

namespace lerobot::train {

/// A checkpoint that a run goes on from, opened and checked.
struct Resumed {
  std::unique_ptr<checkpoint::TrainingStateReader> state;
  checkpoint::TrainingStep step;
  bool same_ranks = false;  ///< as many data-parallel ranks and as large batches as then
};

/// Opens the checkpoint of the configuration and checks that this run can go on from it.
[[nodiscard]] Resumed read_resumed(Run& run);
/// Sets step and data order; warns where they cannot be exact.
void resume_position(Run& run, const Resumed& resumed);
/// Optimizer, groups and schedule, after the layout is made.
void resume_state(Run& run, const Resumed& resumed);
/// Gives this rank its random stream: the one it had, or a fresh one. `resumed` is null on a fresh run.
void start_random_stream(Run& run, const Resumed* resumed);

/// Fills the policy from a pretrained_model folder; names that do not meet are warned about.
void load_policy_weights(Run& run, const std::string& directory);

}  // namespace lerobot::train
