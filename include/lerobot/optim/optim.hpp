#pragma once
// optim: how weights change. In the order of use in one update:
//   Optimizer           Adam, AdamW, SGD over groups of whole or sharded parameters; `rebind` after sharding
//   clip_grad_norm      the global norm over shards, exact on CPU, and the clipping of gradients by it
//   LambdaSchedule      sets the rates of the groups, once per loop step, from a pure `Schedule`
//   ExactSum            a sum that does not depend on the order of its terms
// An element of a parameter gets the same bits whatever layout its tensor is in.
#include "lerobot/optim/clip.hpp"
#include "lerobot/optim/exact_sum.hpp"
#include "lerobot/optim/optimizer.hpp"
#include "lerobot/optim/schedule.hpp"
