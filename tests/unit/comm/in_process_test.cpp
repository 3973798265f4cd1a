#include "lerobot/comm/in_process.hpp"

#include <catch2/catch.hpp>

#include "support/collective_cases.hpp"

namespace lerobot {
namespace {

using comm::ProcessGroupPtr;
using comm::run_ranks;

void on_each_size(void (*cases)(const ProcessGroupPtr&)) {
  for (const int n : {1, 2, 3, 4, 7}) {
    run_ranks(n, [&](const ProcessGroupPtr& group, int rank) {
      testing::check(group->getRank() == rank && group->getSize() == n, "rank {} of {}", rank, n);
      cases(group);
    });
  }
}

TEST_CASE("run_ranks: sums have tree order in every dtype, at every size", "[in_process][comm]") {
  on_each_size(testing::check_sums);
}
TEST_CASE("run_ranks: AVG, MIN, MAX, PREMUL_SUM and flags", "[in_process][comm]") {
  on_each_size(testing::check_other_reductions);
}
TEST_CASE("run_ranks: gathers and broadcasts move the right bytes", "[in_process][comm]") {
  on_each_size(testing::check_moves);
}
TEST_CASE("run_ranks: the whole c10d interface works", "[in_process][comm]") {
  on_each_size(testing::check_c10d_calls);
}
TEST_CASE("run_ranks: overlapping works complete in order", "[in_process][comm]") {
  on_each_size(testing::check_overlap);
}
TEST_CASE("run_ranks: texts and agreed errors", "[in_process][comm]") { on_each_size(testing::check_texts); }
TEST_CASE("run_ranks: calls that do not fit are refused before anything is sent", "[in_process][comm]") {
  on_each_size(testing::check_wrong_calls);
}

TEST_CASE("run_ranks: a hybrid mean equals the mean over all ranks to the bit", "[in_process][comm]") {
  for (const int n : {2, 4, 6, 8}) {
    run_ranks(n, [](const ProcessGroupPtr& group, int) { testing::check_hybrid_sum(group); });
  }
}

TEST_CASE("run_ranks: an exception of one rank frees the others and is rethrown", "[in_process][comm]") {
  std::atomic<int> num_freed{0};
  const auto body = [&](const ProcessGroupPtr& group, int rank) {
    if (rank == 1) throw std::runtime_error("rank one gave up");
    try {
      comm::barrier(*group);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kComm) ++num_freed;
      throw;
    }
  };
  CHECK_THROWS_WITH(run_ranks(3, body), Catch::Contains("rank one gave up"));
  CHECK(num_freed == 2);
}

TEST_CASE("run_ranks: a rank that ends early fails the collective that waits for it", "[in_process][comm]") {
  const auto body = [&](const ProcessGroupPtr& group, int rank) {
    if (rank != 1) comm::barrier(*group);
  };
  CHECK_THROWS_WITH(run_ranks(3, body), Catch::Contains("ended without joining"));
}

TEST_CASE("run_ranks: ranks that disagree on the operation or its size are told so", "[in_process][comm]") {
  const auto other_operation = [](const ProcessGroupPtr& group, int rank) {
    auto x = torch::ones({4});
    if (rank == 0) {
      comm::broadcast(*group, x);
    } else {
      comm::all_reduce(*group, x);
    }
  };
  CHECK_THROWS_WITH(run_ranks(2, other_operation),
                    Catch::Contains("rank 0 calls broadcast") && Catch::Contains("rank 1 calls all-reduce"));
  const auto other_size = [](const ProcessGroupPtr& group, int rank) {
    auto x = torch::ones({4 + rank});
    comm::all_reduce(*group, x);
  };
  CHECK_THROWS_WITH(run_ranks(2, other_size), Catch::Contains("16 bytes") && Catch::Contains("20 bytes"));
}

TEST_CASE("single_rank_group: collectives copy, nothing else", "[in_process][comm]") {
  const auto group = comm::single_rank_group("dp_shard");
  testing::check_sums(group);
  testing::check_moves(group);
  testing::check_texts(group);
  CHECK(group->getGroupName() == "dp_shard");
}

}  // namespace
}  // namespace lerobot
