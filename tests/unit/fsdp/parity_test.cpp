#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "support/fsdp/parity.hpp"

using namespace lerobot;
using namespace lerobot::testing;

namespace {

void run_parity(int num_ranks, const ParityOptions& options, const fsdp::FsdpOptions& fsdp_options = {}) {
  CAPTURE(num_ranks, options.num_shards);
  REQUIRE_NOTHROW(comm::run_ranks(num_ranks, [&](const comm::ProcessGroupPtr& world, int) {
    check_parity(world, options, fsdp_options);
  }));
}

}  // namespace

TEST_CASE("fully_shard: 1, 2, 3 and 4 ranks give the bits of gradients reduced whole, and one process to 1e-6", "[parity]") {
  for (const int num_ranks : {1, 2, 3, 4}) run_parity(num_ranks, {});
}

TEST_CASE("fully_shard: 2x2 and 4x1 ranks give the bits of four", "[parity]") {
  run_parity(4, {.net = {}, .num_shards = 2, .prepare = {}});
  run_parity(4, {.net = {}, .num_shards = 1, .prepare = {}});
}

TEST_CASE("fully_shard: the result does not depend on the choice of units", "[parity]") {
  for (const std::vector<std::string>& classes : {std::vector<std::string>{"Block"}, {"Stem", "Uneven"}, {"Tied"}})
    run_parity(2, {}, {.wrap = {.class_names = classes, .min_num_params = {}, .declared = {}}, .mp_policy = {}, .ignored_modules = {}});
}

TEST_CASE("fully_shard: the result does not depend on resharding after forward", "[parity]") {
  run_parity(3, {}, {.wrap = {}, .mp_policy = {}, .reshard_after_forward = false, .ignored_modules = {}});
}

TEST_CASE("fully_shard: micro-batches under NoSync add up to the bits of accumulation without sharding", "[parity]") {
  run_parity(2, {.net = {}, .accumulation = 3, .prepare = {}});
  run_parity(4, {.net = {}, .num_shards = 2, .accumulation = 2, .prepare = {}},
             {.wrap = {}, .mp_policy = {}, .reshard_after_forward = false, .ignored_modules = {}});
}

TEST_CASE("fully_shard: frozen parameters are gathered, get no gradient and keep their bits", "[parity]") {
  run_parity(2, {.net = {.frozen_part = true}, .prepare = {}});
  run_parity(3, {.net = {.frozen_part = true}, .accumulation = 2, .prepare = {}});
}

TEST_CASE("fully_shard: ignored modules are averaged over all ranks and stay whole", "[parity]") {
  const fsdp::FsdpOptions options{
      .wrap = {.class_names = {"Block"}, .min_num_params = {}, .declared = {}}, .mp_policy = {}, .ignored_modules = "head|blocks\\.1"};
  run_parity(2, {}, options);
  run_parity(4, {.net = {}, .num_shards = 2, .accumulation = 2, .prepare = {}}, options);
}
