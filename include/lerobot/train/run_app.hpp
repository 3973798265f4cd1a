#pragma once

#include "lerobot/policies/registry.hpp"

namespace lerobot::train {

/// The whole of a training program: parses the command line, starts MPI, trains, and turns failures into one message
/// and an exit code.
///
/// Returns 0 done; 1 configuration, dataset, checkpoint or internal error; 2 form of the command line; 3 communication
/// or a lost rank. Started by mpirun it is one of the job's ranks, else the only one. `registry` holds the policies
/// that
/// `--policy.type` may name. The outcome is also written to `<output_dir>/exit.json`, since mpirun hides codes of
/// ranks.
[[nodiscard]] int run_app(int argc, char** argv, const policies::Registry& registry);

}  // namespace lerobot::train
