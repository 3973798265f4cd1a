#pragma once

#include <memory>

#include "lerobot/comm/process_group.hpp"
#include "lerobot/config/parse_train.hpp"
#include "lerobot/log/logger.hpp"
#include "lerobot/policies/policy.hpp"
#include "lerobot/policies/registry.hpp"
#include "lerobot/train/seams.hpp"

namespace lerobot::train {

/// Where a run takes place.
struct Context {
  comm::ProcessGroupPtr world;  ///< all ranks of the job, for CPU tensors
  int local_rank = 0;           ///< rank among those of this host
  int local_size = 1;           ///< ranks on this host
};

/// Trains one policy, from a checked configuration to the last checkpoint.
///
/// The layout (one process, DDP, FSDP, HSDP) follows from the degrees of `parallelism` alone; the policy does not know
/// of it. Rooms do the work: the Trainer is the one place that knows them all.
class Trainer {
 public:
  /// Sets the run up: dataset, policy, processors, optimizer, layout, and the state of a resumed run.
  ///
  /// Collective: over `context.world`; a failure on one rank is thrown on all.
  /// Throws: Error{kConfig, kDataset, kCheckpoint} before anything is written.
  Trainer(config::ParsedTrain parsed, Context context, const policies::Registry& registry, log::Logger& logger,
          Seams seams = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// The loop: from the present step to `steps`, with log lines, held-out losses and checkpoints on the way.
  ///
  /// Collective: over all ranks. A failure of one rank inside a step is thrown on that rank only: whoever calls ends
  /// the job then (`run_app` does).
  void run();

  [[nodiscard]] policies::Policy& policy();
  /// Loop steps done.
  [[nodiscard]] std::int64_t step() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lerobot::train
