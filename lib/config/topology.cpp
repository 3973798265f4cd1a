#include "lerobot/config/topology.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "lerobot/core/error.hpp"

namespace lerobot::config {
namespace {

void at_least_one(std::int64_t value, const char* name) {
  if (value < 1) fail(ErrorKind::kConfig, "parallelism.{}={}: expected {} >= 1.", name, value, name);
}

/// a * b, or the largest number when that overflows: degrees come from the command line.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

std::string remedy(const ParallelismConfig& declared, std::int64_t world_size) {
  if (world_size % declared.dp_replicate == 0)
    return fmt::format("Set dp_shard={} or -1, or start {} ranks.", world_size / declared.dp_replicate,
                       product(declared.dp_replicate, declared.dp_shard));
  if (world_size % declared.dp_shard == 0)
    return fmt::format("Set dp_replicate={}, or start {} ranks.", world_size / declared.dp_shard,
                       product(declared.dp_replicate, declared.dp_shard));
  return fmt::format("Choose degrees that multiply to {}.", world_size);
}

}  // namespace

std::int64_t ParallelismConfig::dp_world_size() const {
  if (dp_shard == -1)
    fail(ErrorKind::kInternal,
         "parallelism: dp_world_size was asked for while dp_shard=-1; call resolve_topology first.");
  return dp_replicate * dp_shard;
}

void check_degrees(const ParallelismConfig& parallelism) {
  at_least_one(parallelism.dp_replicate, "dp_replicate");
  if (parallelism.dp_shard < 1 && parallelism.dp_shard != -1)
    fail(ErrorKind::kConfig,
         "parallelism.dp_shard={}: expected dp_shard >= 1, or -1 to shard over all ranks that are left.",
         parallelism.dp_shard);
  at_least_one(parallelism.context_parallel.ring_degree, "context_parallel.ring_degree");
  at_least_one(parallelism.context_parallel.ulysses_degree, "context_parallel.ulysses_degree");
  if (parallelism.cfg_parallel != 1 && parallelism.cfg_parallel != 2)
    fail(ErrorKind::kConfig, "parallelism.cfg_parallel={}: expected 1 or 2.", parallelism.cfg_parallel);
}

ParallelismConfig resolve_topology(ParallelismConfig declared, std::int64_t world_size) {
  check_degrees(declared);
  if (world_size < 1) fail(ErrorKind::kInternal, "parallelism: a world of {} ranks.", world_size);
  if (declared.dp_replicate == 1 && declared.dp_shard == 1) {
    declared.dp_replicate = world_size;
    return declared;
  }
  if (declared.dp_shard == -1) {
    if (world_size % declared.dp_replicate != 0 || world_size / declared.dp_replicate == 0)
      fail(ErrorKind::kConfig,
           "parallelism: Cannot infer dp_shard (-1): WORLD_SIZE={} is not divisible by dp_replicate={}. Set "
           "dp_replicate to "
           "a divisor of {}, or start a multiple of {} ranks.",
           world_size, declared.dp_replicate, world_size, declared.dp_replicate);
    declared.dp_shard = world_size / declared.dp_replicate;
  }
  if (product(declared.dp_replicate, declared.dp_shard) != world_size)
    fail(ErrorKind::kConfig, "parallelism: dp_replicate={} x dp_shard={} = {}, but WORLD_SIZE={}. {}",
         declared.dp_replicate, declared.dp_shard, product(declared.dp_replicate, declared.dp_shard), world_size,
         remedy(declared, world_size));
  return declared;
}

void check_resolved(const ParallelismConfig& resolved, std::int64_t world_size) {
  if (resolved.dp_shard == -1)
    fail(ErrorKind::kInternal, "parallelism: dp_shard=-1 is not a topology yet; call resolve_topology first.");
  if (product(resolved.dp_replicate, resolved.dp_shard) != world_size)
    fail(ErrorKind::kInternal,
         "parallelism: dp_replicate={}, dp_shard={} was resolved for another world than world_size={}.",
         resolved.dp_replicate, resolved.dp_shard, world_size);
}

}  // namespace lerobot::config
