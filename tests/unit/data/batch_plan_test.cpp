#include "lerobot/data/batch_plan.hpp"

#include <torch/torch.h>

#include "lerobot/data/sampler.hpp"
#include "lerobot/formats/json.hpp"
#include "support/collecting_logger.hpp"
#include "support/expect_error.hpp"
#include "support/sha256.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::Json;
using lerobot::data::BatchLayout;
using lerobot::data::BatchPlan;
using lerobot::data::Progress;
using Ints = std::vector<std::int64_t>;
using Batches = std::vector<Ints>;

/// The batches of a rank until the epoch of the start is over.
Batches first_epoch(const BatchPlan& plan, std::int64_t rank) {
  Batches out;
  const std::int64_t epoch = plan.round(0).epoch;
  for (std::int64_t n = 0; plan.round(n).epoch == epoch; ++n) out.push_back(plan.positions(plan.round(n), rank));
  return out;
}

std::string python_text(const Batches& batches) {
  std::string text = "[";
  for (std::size_t i = 0; i < batches.size(); ++i) {
    text += i == 0 ? "[" : ", [";
    for (std::size_t k = 0; k < batches[i].size(); ++k) text += (k == 0 ? "" : ", ") + std::to_string(batches[i][k]);
    text += "]";
  }
  return text + "]";
}

}  // namespace

TEST_CASE("BatchPlan: the worked examples of the specification", "[batch_plan]") {
  const BatchPlan eleven({11, 2, 2});
  CHECK(eleven.rounds_per_epoch() == 3);
  CHECK(first_epoch(eleven, 0) == Batches{{0, 1}, {4, 5}, {8, 9}});
  CHECK(first_epoch(eleven, 1) == Batches{{2, 3}, {6, 7}, {10, 0}});
  const BatchPlan thirteen({13, 3, 2});
  CHECK(first_epoch(thirteen, 0) == Batches{{0, 1, 2}, {6, 7, 8}, {12, 0, 1}});
  CHECK(first_epoch(thirteen, 1) == Batches{{3, 4, 5}, {9, 10, 11}, {2, 3, 4}});
  const BatchPlan five({5, 4, 3});
  CHECK(first_epoch(five, 0) == Batches{{0, 1, 2, 3}});
  CHECK(first_epoch(five, 1) == Batches{{4, 0, 1, 2}});
  CHECK(first_epoch(five, 2) == Batches{{3, 4, 0, 1}});
  const BatchPlan three({3, 2, 4});
  const Batches expected{{0, 1}, {2, 0}, {1, 2}, {0, 1}};
  for (std::int64_t rank = 0; rank < 4; ++rank)
    CHECK(first_epoch(three, rank) == Batches{expected[static_cast<std::size_t>(rank)]});
}

TEST_CASE("BatchPlan: seven frames, batch three, two ranks (case D5)", "[batch_plan]") {
  const BatchPlan plan({7, 3, 2});
  CHECK(first_epoch(plan, 0) == Batches{{0, 1, 2}, {6, 0, 1}});
  CHECK(first_epoch(plan, 1) == Batches{{3, 4, 5}, {2, 3, 4}});
  CHECK(plan.round(2) == lerobot::data::Round{1, 0});
}

TEST_CASE("BatchPlan: a resume goes on where the run stopped (case U1)", "[batch_plan]") {
  const BatchPlan unbroken({10, 2, 2});
  CHECK(first_epoch(unbroken, 1) == Batches{{2, 3}, {6, 7}, {0, 1}});
  const BatchPlan resumed({10, 2, 2}, lerobot::data::progress_of_step(1, {10, 2, 2}));
  CHECK(first_epoch(resumed, 0) == Batches{{4, 5}, {8, 9}});
  CHECK(first_epoch(resumed, 1) == Batches{{6, 7}, {0, 1}});
}

TEST_CASE("BatchPlan: a run cut anywhere equals the unbroken one", "[batch_plan]") {
  for (const BatchLayout layout : {BatchLayout{7, 3, 2}, {10, 2, 2}, {5, 4, 3}, {100, 7, 4}, {1, 1, 1}}) {
    const BatchPlan unbroken(layout);
    for (std::int64_t cut = 0; cut < 12; ++cut) {
      const Progress progress = unbroken.progress(cut);
      CHECK(progress == lerobot::data::progress_of_step(cut, layout));
      CHECK(progress.total_samples == cut * layout.batch_size * layout.dp_world);
      const BatchPlan resumed(layout, progress);
      for (std::int64_t n = 0; n < 12; ++n)
        for (std::int64_t rank = 0; rank < layout.dp_world; ++rank) {
          CHECK(resumed.round(n) == unbroken.round(cut + n));
          CHECK(resumed.positions(resumed.round(n), rank) == unbroken.positions(unbroken.round(cut + n), rank));
        }
      CHECK(resumed.progress(5) == unbroken.progress(cut + 5));
    }
  }
}

TEST_CASE("BatchPlan: another world and batch size deal the rest of the epoch anew, each sample once", "[batch_plan]") {
  const BatchPlan before({100, 5, 2});
  const Progress progress = before.progress(3);
  CHECK(progress == Progress{0, 30, 30});
  const BatchPlan after({100, 4, 3}, progress);
  Ints seen;
  std::int64_t rounds = 0;
  for (; after.round(rounds).epoch == 0; ++rounds)
    for (std::int64_t rank = 0; rank < 3; ++rank)
      for (const std::int64_t p : after.positions(after.round(rounds), rank)) seen.push_back(p);
  CHECK(rounds == 6);  // 70 samples left, 12 a round
  REQUIRE(seen.size() == 72);
  for (std::int64_t i = 0; i < 70; ++i) CHECK(seen[static_cast<std::size_t>(i)] == 30 + i);
  CHECK(Ints(seen.end() - 2, seen.end()) == Ints{0, 1});  // filler, from position 0
  CHECK(after.round(rounds) == lerobot::data::Round{1, 0});
  CHECK(after.progress(rounds) == Progress{1, 0, 102});
}

TEST_CASE("progress_of_step: recorded positions", "[batch_plan]") {
  const Json all =
      lerobot::formats::read_json(std::string(LEROBOT_TEST_DATA) + "/sampler/batch_sharding.json", ErrorKind::kDataset);
  for (const Json& entry : all["compute_sampler_state"]) {
    INFO(entry.dump());
    const Progress progress = lerobot::data::progress_of_step(
        entry["step"], {entry["num_frames"], entry["batch_size"], entry["num_processes"]});
    CHECK(progress.epoch == entry["state"]["epoch"].get<std::int64_t>());
    CHECK(progress.samples_in_epoch == entry["state"]["start_index"].get<std::int64_t>());
  }
  CHECK(lerobot::data::progress_of_step(7, {100, 10, 2}) == Progress{1, 40, 140});
  CHECK(lerobot::data::progress_of_step(12, {95, 10, 2}) == Progress{2, 40, 240});
  CHECK(lerobot::data::progress_of_step(11, {105, 10, 2}) == Progress{1, 100, 220});
}

TEST_CASE("BatchPlan: batches per rank as recorded from accelerate", "[batch_plan]") {
  const Json all =
      lerobot::formats::read_json(std::string(LEROBOT_TEST_DATA) + "/sampler/batch_sharding.json", ErrorKind::kDataset);
  const Json bounds = lerobot::formats::read_json(
      std::string(LEROBOT_TEST_DATA) + "/sampler/episode_aware_sampler.json", ErrorKind::kDataset);
  lerobot::test::CollectingLogger logger;
  const Ints from = bounds["dataset_from_index"], to = bounds["dataset_to_index"];
  for (const Json& entry : all["shards"]) {
    const lerobot::data::EpisodeAwareSampler sampler(from, to, {.seed = entry["seed"]}, logger);
    const BatchLayout layout{sampler.num_frames(), entry["batch_size"], entry["world"]};
    const std::int64_t start = entry["start_index"];
    const BatchPlan plan(layout, {entry["epoch"], start, 0});
    const at::Tensor order = sampler.order(entry["epoch"]);
    for (std::int64_t rank = 0; rank < layout.dp_world; ++rank) {
      INFO("world " << layout.dp_world << " batch " << layout.batch_size << " start " << start << " rank " << rank);
      const auto r = static_cast<std::size_t>(rank);
      Batches batches = first_epoch(plan, rank);
      REQUIRE(batches.size() == entry["n_batches"][r].get<std::size_t>());
      for (std::size_t b = 0; b < batches.size(); ++b)
        for (std::int64_t& position : batches[b]) {
          // LeRobot (Python) fills from the resume point on; ours fills from position 0 (design: exactness).
          const std::int64_t at = plan.round(static_cast<std::int64_t>(b)).begin + rank * layout.batch_size +
                                  (&position - batches[b].data());
          if (at >= layout.num_frames) position = start + (at - layout.num_frames) % (layout.num_frames - start);
          position = sampler.frame(order[position].item<std::int64_t>());
        }
      CHECK(Batches(batches.begin(), batches.begin() + 2) == entry["first_two"][r].get<Batches>());
      CHECK(lerobot::test::sha256(python_text(batches)) == entry["sha256_of_all"][r].get<std::string>());
    }
  }
}

TEST_CASE("BatchPlan: refuses sizes and starts that do not fit", "[batch_plan]") {
  using lerobot::test::expect_error;
  expect_error(ErrorKind::kConfig, {"batch_size=0"}, [] { BatchPlan({10, 0, 1}); });
  expect_error(ErrorKind::kConfig, {"sample 11", "10 frames"}, [] { BatchPlan({10, 1, 1}, {0, 11, 0}); });
}

TEST_CASE("resume_warnings: one text per quantity that differs", "[batch_plan]") {
  CHECK(lerobot::data::resume_warnings({10, 2, 2}, {10, 2, 2}).empty());
  const auto warnings = lerobot::data::resume_warnings({10, 2, 4}, {10, 8, 1});
  REQUIRE(warnings.size() == 2);
  for (const char* part : {"dp_world", "4", "1", "sample-exactness"})
    CHECK_THAT(warnings[0], Catch::Matchers::Contains(part));
  for (const char* part : {"batch_size", "2", "8", "sample-exactness"})
    CHECK_THAT(warnings[1], Catch::Matchers::Contains(part));
}
