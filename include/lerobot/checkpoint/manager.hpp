#pragma once

#include <filesystem>
#include <memory>

#include "lerobot/checkpoint/contents.hpp"
#include "lerobot/comm/process_group.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::checkpoint {

/// The ranks of a run, as checkpoints see them.
struct Ranks {
  comm::ProcessGroupPtr world = {};  ///< none: one process
  comm::ProcessGroupPtr shard = {};  ///< ranks that hold the rows of one model; none: the run is not sharded
  int replica_rank = 0;         ///< which copy of the model this rank's shard group holds; 0 is gathered and saved
};

struct ManagerOptions {
  std::filesystem::path directory = {};  ///< <output_dir>/checkpoints
  CheckpointFormat format = CheckpointFormat::kSafetensors;
  int keep_last = 0;          ///< keep this many newest checkpoints; 0: all
  double timeout_s = 3600.0;  ///< how long ranks wait for the one that writes
};

/// Writes checkpoints: complete or not at all.
///
/// Everything is made in a folder under a temporary name and synced, then listed with sums in manifest.json; one rename
/// makes the step appear, another moves `last`. A crash at any point leaves `last` on a complete checkpoint.
class CheckpointManager {
 public:
  CheckpointManager(ManagerOptions options, Ranks ranks, log::Logger& logger);

  /// Writes one checkpoint and gives its folder.
  ///
  /// `last` moves to it unless a weight is infinite or NaN, which is warned about. Then the oldest checkpoints beyond
  /// `keep_last` are removed. Only rank 0 writes files, apart from shards.
  ///
  /// Collective: over all ranks, with equal names in equal order.
  /// Memory: one gathered tensor at a time.
  /// Throws: the same Error{kCheckpoint} on every rank, with the path and the system's reason; "file exists" when
  ///         `last` is something other than a link. Nothing is left behind then.
  std::filesystem::path save(const CheckpointContents& contents);

 private:
  [[nodiscard]] bool is_main() const;
  void write_state(const std::filesystem::path& directory, const CheckpointContents& contents) const;
  void remove_old(const std::filesystem::path& newest) const;

  ManagerOptions options_;
  Ranks ranks_;
  log::Logger& logger_;
  bool swept_ = false;  ///< left-overs of an earlier crash were removed
};

}  // namespace lerobot::checkpoint
