#pragma once

#include <cstdint>

namespace lerobot::config {

/// Degrees of sequence parallelism; both are 1 for training.
struct ContextParallelConfig {
  std::int64_t ring_degree = 1;
  std::int64_t ulysses_degree = 1;
  bool operator==(const ContextParallelConfig&) const = default;
};

/// How the processes of a job share the work: `dp_replicate` copies of a model that is split over `dp_shard` ranks.
struct ParallelismConfig {
  std::int64_t dp_replicate = 1;
  std::int64_t dp_shard = 1;  ///< -1: as many as the other degrees leave
  ContextParallelConfig context_parallel;
  std::int64_t cfg_parallel = 1;
  bool operator==(const ParallelismConfig&) const = default;

  /// Whether parameters are split. True for `dp_shard=-1` also before it is resolved.
  [[nodiscard]] constexpr bool sharded() const { return dp_shard != 1; }
  /// Number of data-parallel workers. Throws Error{kInternal} that names `resolve_topology` while `dp_shard` is -1.
  [[nodiscard]] std::int64_t dp_world_size() const;
};

/// Checks each degree by itself. Throws Error{kConfig} with the flag, the value and what is allowed.
void check_degrees(const ParallelismConfig& parallelism);

/// The block with every degree a number: (1, 1) becomes (world_size, 1), and `dp_shard=-1` is filled up.
///
/// Idempotent. Pure.
/// Throws: Error{kConfig} when the degrees do not multiply to `world_size`.
[[nodiscard]] ParallelismConfig resolve_topology(ParallelismConfig declared, std::int64_t world_size);

/// Checks that `resolved` came out of resolve_topology for this `world_size`. Throws Error{kInternal} otherwise.
void check_resolved(const ParallelismConfig& resolved, std::int64_t world_size);

}  // namespace lerobot::config
