#pragma once
// fsdp: parameters, gradients and optimizer state of a module divided over ranks.
//   1. WrapPolicy        which modules move together (wrap_units.hpp: pure rules)
//   2. FsdpOptions       precision, resharding, offload, ignored modules
//   3. fully_shard       does it, and returns
//   4. ShardedModule     the owning handle: parameters for the optimizer, state for checkpoints, banner facts
//   5. NoSync, Unsharded temporary states, as scopes
// Below them, in lib/fsdp: ParamGroup holds the memory of one unit, Reduction carries its gradients, Engine runs both
// around forward and backward, CallOrder knows which unit comes next.
#include "lerobot/fsdp/fully_shard.hpp"
#include "lerobot/fsdp/options.hpp"
#include "lerobot/fsdp/sharded_module.hpp"
#include "lerobot/fsdp/wrap_units.hpp"
