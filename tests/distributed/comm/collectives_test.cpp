#include <catch2/catch.hpp>

#include "support/collective_cases.hpp"

namespace lerobot {
namespace {

struct World {
  comm::MpiEnvironment mpi;
  comm::ProcessGroupPtr group = mpi.world({.timeout_s = 60});
};

TEST_CASE("MpiEnvironment: ranks and groups agree", "[comm][distributed]") {
  World world;
  CHECK(world.group->getRank() == world.mpi.rank());
  CHECK(world.group->getSize() == world.mpi.world_size());
  CHECK(world.mpi.local_size() == world.mpi.world_size());  // tests run on one host
  CHECK(world.mpi.local_rank() == world.mpi.rank());
  CHECK(world.group->getGroupName() == "world");
  CHECK(world.mpi.world().get() == world.group.get());
}

TEST_CASE("MpiBackend: sums have tree order in every dtype, at every size", "[comm][distributed]") {
  World world;
  testing::check_sums(world.group);
}
TEST_CASE("MpiBackend: AVG, MIN, MAX, PREMUL_SUM and flags", "[comm][distributed]") {
  World world;
  testing::check_other_reductions(world.group);
}
TEST_CASE("MpiBackend: gathers and broadcasts move the right bytes", "[comm][distributed]") {
  World world;
  testing::check_moves(world.group);
}
TEST_CASE("MpiBackend: the whole c10d interface works", "[comm][distributed]") {
  World world;
  testing::check_c10d_calls(world.group);
}
TEST_CASE("MpiBackend: overlapping works complete in order", "[comm][distributed]") {
  World world;
  testing::check_overlap(world.group);
}
TEST_CASE("MpiBackend: texts and agreed errors", "[comm][distributed]") {
  World world;
  testing::check_texts(world.group);
}
TEST_CASE("MpiBackend: calls that do not fit are refused before anything is sent", "[comm][distributed]") {
  World world;
  testing::check_wrong_calls(world.group);
}

TEST_CASE("MpiBackend: a hybrid mean equals the mean over all ranks to the bit", "[comm][distributed]") {
  World world;
  if (world.mpi.world_size() % 2 == 0) testing::check_hybrid_sum(world.group);
}

TEST_CASE("MpiBackend: the engine moves a started collective on while nobody waits", "[comm][distributed]") {
  World world;
  auto x = torch::full({1 << 20}, 1.0F);
  const auto work = comm::start_all_reduce(*world.group, x);
  while (!work->isCompleted()) std::this_thread::yield();
  CHECK(x[0].item<float>() == static_cast<float>(world.mpi.world_size()));
}

TEST_CASE("MpiBackend: several threads may wait at once", "[comm][distributed]") {
  World world;
  std::vector<at::Tensor> tensors;
  std::vector<comm::WorkPtr> works;
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(torch::full({50000}, static_cast<float>(i)));
    works.push_back(comm::start_all_reduce(*world.group, tensors.back()));
  }
  std::vector<std::thread> threads;
  for (const auto& work : works) threads.emplace_back([&work] { work->wait(); });
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(tensors[i][0].item<float>() == static_cast<float>(i) * static_cast<float>(world.mpi.world_size()));
  }
}

TEST_CASE("MpiBackend: ranks that disagree on a size are told so", "[comm][distributed]") {
  World world;
  if (world.mpi.world_size() != 2) return;
  auto x = torch::ones({world.mpi.rank() == 0 ? 4 : 6});
  CHECK_THROWS_WITH(comm::all_reduce(*world.group, x), Catch::Contains("All ranks must call it with the same sizes"));
  // Nothing may run after that: what peers got is unknown.
  CHECK_THROWS_AS(comm::barrier(*world.group), Error);
}

}  // namespace
}  // namespace lerobot
