#pragma once

#include <optional>
#include <string>

#include "lerobot/comm/process_group.hpp"
#include "lerobot/fsdp/wrap_units.hpp"
#include "lerobot/log/logger.hpp"
#include "lerobot/precision/mixed_precision_policy.hpp"

namespace lerobot::fsdp {

/// What becomes of a unit's gathered parameters between its forward and its backward. The root unit always keeps them.
///
/// `true` frees them and gathers again in backward: least memory. `false` keeps them: one all-gather less. A number n
/// keeps 1/n of them and gathers in backward among n neighbouring ranks only (`ShardGroups::reshard`).
class ReshardAfterForward {
 public:
  constexpr ReshardAfterForward(bool reshard) : reshard_(reshard) {}        // NOLINT: reads as the value it is
  constexpr ReshardAfterForward(int num_shards) : reshard_(num_shards != 1), num_shards_(num_shards) {}  // NOLINT

  [[nodiscard]] constexpr bool keeps_whole() const { return !reshard_; }
  /// Shards to keep after forward; 0: the same as before it.
  [[nodiscard]] constexpr int num_shards() const { return reshard_ ? num_shards_ : 0; }

 private:
  bool reshard_;
  int num_shards_ = 0;
};

/// The groups that a sharded module communicates in. Any c10d group will do.
struct ShardGroups {
  comm::ProcessGroupPtr shard;      ///< its ranks hold one copy of the parameters together
  comm::ProcessGroupPtr replicate;  ///< ranks with the same shard in other copies; null or of one rank without HSDP
  comm::ProcessGroupPtr reshard;    ///< neighbours in `shard`, for a numeric `reshard_after_forward` only
};

struct FsdpOptions {
  WrapPolicy wrap;
  precision::MixedPrecisionPolicy mp_policy;
  ReshardAfterForward reshard_after_forward = true;
  /// Shards, gradients and optimizer state live on the CPU; no effect where the module is there anyway.
  bool cpu_offload = false;
  /// Modules whose whole path matches stay whole on every rank, with all below them.
  std::optional<std::string> ignored_modules;
  /// Hears of settings that had no effect. Not kept after `fully_shard` returns.
  log::Logger* logger = nullptr;
};

}  // namespace lerobot::fsdp
