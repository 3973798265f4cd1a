#pragma once

#include <memory>

#include "lerobot/fsdp/options.hpp"
#include "lerobot/fsdp/sharded_module.hpp"

namespace lerobot::fsdp {

/// Splits every wrap unit of `module` over the ranks of `groups.shard` and keeps only this rank's rows.
///
/// A forward then all-gathers one unit at a time and the next one ahead; backward reduce-scatters its gradients, and
/// averages the pieces over `groups.replicate`. FQNs and types do not change. All ranks must hold the same values.
///
/// Collective: every rank of both groups calls it at the same point. It does not communicate.
/// Shapes: a parameter [d0, ...] becomes [r, ...], r = ceil(d0 / shards); the last ranks may hold fewer rows, or none.
/// Memory: state / shards, the root unit, two gathered units, one unit's gradients, one reduction buffer.
/// Throws: Error{kConfig} as `resolve_wrap_units`; for trainable parameters of several dtypes in one unit; for a numeric
///   `reshard_after_forward` that does not fit `groups.reshard`.
/// Source: PyTorch FSDP2 `fully_shard`. Differs: one call for all units; only dim 0 is sharded; a unit that is called
///   several times is reduced once.
[[nodiscard]] ShardedModule fully_shard(std::shared_ptr<torch::nn::Module> module, const ShardGroups& groups,
                                        FsdpOptions options = {});

}  // namespace lerobot::fsdp
