#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lerobot/comm/process_group.hpp"
#include "lerobot/mesh/tensor_slice.hpp"
#include "lerobot/policies/policy.hpp"

namespace lerobot::train {

/// A stretch of the loop in which gradients stay on their rank.
class NoSyncScope {
 public:
  virtual ~NoSyncScope() = default;
};

/// How a policy is spread over the ranks, behind one face: alone, replicated, sharded.
class Layout {
 public:
  virtual ~Layout() = default;

  /// The leaves that the optimizer updates, in registration order: whole tensors, or this rank's rows.
  [[nodiscard]] virtual mesh::StateDict parameters() const = 0;
  /// Parameters and persistent buffers, as a checkpoint holds them.
  [[nodiscard]] virtual mesh::StateDict model_state() const = 0;
  /// Gradients stay local while the scope lives. Null where there is nothing to hold back.
  [[nodiscard]] virtual std::unique_ptr<NoSyncScope> no_sync() = 0;
  /// The group over which norms of sharded gradients are summed; null: every rank holds whole gradients.
  [[nodiscard]] virtual comm::ProcessGroupPtr norm_group() const = 0;
  /// Which copy of the model this rank's shard group holds.
  [[nodiscard]] virtual int replica_rank() const { return 0; }
  /// Lines of the banner that describe the layout; empty for one process and DDP.
  [[nodiscard]] virtual std::vector<std::string> description() const { return {}; }
};

struct Run;

/// The layout that the degrees of the configuration ask for: one process, DDP, FSDP or HSDP.
///
/// Collective: over all ranks.
[[nodiscard]] std::unique_ptr<Layout> make_layout(Run& run);

}  // namespace lerobot::train
