#include "lerobot/data/split.hpp"

#include <torch/torch.h>

#include "support/expect_error.hpp"
#include "unit/data/fixtures.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::data::Episode;
using lerobot::data::split_episodes;
using Ints = std::vector<std::int64_t>;

std::vector<Episode> episodes(std::initializer_list<const char*> tasks) {
  std::vector<Episode> out;
  for (const char* task : tasks) {
    Episode& episode = out.emplace_back();
    if (*task != '\0') episode.tasks = {task, "second"};
  }
  return out;
}

}  // namespace

TEST_CASE("split_episodes: the last episodes of every task are held out", "[split]") {
  const auto all = episodes({"a", "b", "a", "a", "b", "a"});
  const auto split = split_episodes(all, Ints{0, 1, 2, 3, 4, 5}, 0.3);
  CHECK(split.train == Ints{0, 2, 1});
  CHECK(split.eval == Ints{3, 5, 4});
  CHECK(split_episodes(all, Ints{5, 0, 2}, 0.3).eval == Ints{2});  // in the order given
  const auto none = split_episodes(all, Ints{4, 1}, 0.0);
  CHECK(none.train == Ints{4, 1});
  CHECK(none.eval.empty());
  CHECK(split_episodes(episodes({"", "a", ""}), Ints{0, 1, 2}, 0.4).eval == Ints{2, 1});
}

TEST_CASE("split_episodes: refuses a share that leaves nothing", "[split]") {
  using lerobot::test::expect_error;
  const auto all = episodes({"a", "b"});
  expect_error(ErrorKind::kConfig, {"leaves 0 training episodes", "0.5"}, [&] {
    (void)split_episodes(all, Ints{0, 1}, 0.5);
  });
  expect_error(ErrorKind::kConfig, {"eval_split", "1"}, [&] { (void)split_episodes(all, Ints{0, 1}, 1.0); });
  expect_error(ErrorKind::kConfig, {"eval_split", "-0.1"}, [&] { (void)split_episodes(all, Ints{0, 1}, -0.1); });
}

TEST_CASE("eval_positions: evenly over tasks, at least one each", "[split]") {
  const lerobot::test::Fixture fixture({.lengths = {4, 3, 4}, .task_of_episode = {1, 0, 1}});
  const auto dataset = fixture.open();
  CHECK(lerobot::data::eval_positions(*dataset, 0).size() == 11);
  CHECK(lerobot::data::eval_positions(*dataset, 5) == Ints{4, 5, 0, 1});
  CHECK(lerobot::data::eval_positions(*dataset, 1) == Ints{4, 0});
  CHECK(lerobot::data::eval_positions(*dataset, 100) == Ints{4, 5, 6, 0, 1, 2, 3, 7, 8, 9, 10});
}
