#include "lerobot/config/topology.hpp"

#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;

namespace {

ParallelismConfig degrees(std::int64_t dp_replicate, std::int64_t dp_shard) {
  ParallelismConfig config;
  config.dp_replicate = dp_replicate;
  config.dp_shard = dp_shard;
  return config;
}

}  // namespace

TEST_CASE("resolve_topology: degrees are filled up to the world", "[topology]") {
  struct Row {
    std::int64_t replicate, shard, world, resolved_replicate, resolved_shard;
  };
  for (const Row& row : {Row{1, 1, 1, 1, 1},
                         {1, 1, 8, 8, 1},
                         {1, -1, 8, 1, 8},
                         {2, -1, 8, 2, 4},
                         {2, 4, 8, 2, 4},
                         {1, -1, 1, 1, 1},
                         {8, 1, 8, 8, 1}}) {
    CAPTURE(row.replicate, row.shard, row.world);
    const ParallelismConfig resolved = resolve_topology(degrees(row.replicate, row.shard), row.world);
    CHECK(resolved == degrees(row.resolved_replicate, row.resolved_shard));
    CHECK(resolved.dp_world_size() == row.world);
    CHECK(resolved.sharded() == (row.resolved_shard != 1));
    CHECK(resolve_topology(resolved, row.world) == resolved);
    check_resolved(resolved, row.world);
  }
  CHECK(degrees(1, -1).sharded());
}

TEST_CASE("resolve_topology: degrees that do not make the world are refused with all numbers", "[topology]") {
  const auto message = [](const ParallelismConfig& config, std::int64_t world) -> std::string {
    try {
      return "accepted " + std::to_string(resolve_topology(config, world).dp_shard);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      return error.what();
    }
  };
  CHECK_THAT(message(degrees(2, 2), 8), Catch::Contains("dp_replicate=2") && Catch::Contains("dp_shard=2") &&
                                            Catch::Contains("WORLD_SIZE=8") && Catch::Contains("= 4"));
  CHECK_THAT(message(degrees(4, 1), 8), Catch::Contains("WORLD_SIZE=8"));
  CHECK_THAT(message(degrees(1, 4), 8), Catch::Contains("WORLD_SIZE=8"));
  CHECK_THAT(message(degrees(1, 2), 1), Catch::Contains("WORLD_SIZE=1"));
  CHECK_THAT(message(degrees(3, -1), 8), Catch::Contains("Cannot infer dp_shard") && Catch::Contains("not divisible") &&
                                             Catch::Contains("8") && Catch::Contains("3"));
  CHECK_THAT(message(degrees(16, -1), 8), Catch::Contains("not divisible"));
  CHECK_THAT(message(degrees(INT64_MAX, 2), 8), Catch::Contains("WORLD_SIZE=8"));
}

TEST_CASE("resolve_topology: a degree that makes no sense names its flag and what is allowed", "[topology]") {
  CHECK_THROWS_WITH(resolve_topology(degrees(0, 1), 8),
                    Catch::Contains("dp_replicate=0") && Catch::Contains("dp_replicate >= 1"));
  CHECK_THROWS_WITH(resolve_topology(degrees(-1, 1), 8), Catch::Contains("dp_replicate=-1"));
  CHECK_THROWS_WITH(resolve_topology(degrees(1, 0), 8),
                    Catch::Contains("dp_shard=0") && Catch::Contains("dp_shard >= 1, or -1"));
  CHECK_THROWS_WITH(resolve_topology(degrees(1, -2), 8), Catch::Contains("dp_shard=-2"));
}

TEST_CASE("ParallelismConfig: what was not resolved, or for another world, is no topology", "[topology]") {
  CHECK_THROWS_WITH(degrees(1, -1).dp_world_size(), Catch::Contains("resolve"));
  CHECK_THROWS_WITH(check_resolved(degrees(1, -1), 8), Catch::Contains("resolve"));
  CHECK_THROWS_WITH(check_resolved(resolve_topology(degrees(1, 1), 8), 4), Catch::Contains("world_size=4"));
}
