#include "lerobot/data/sampler.hpp"

#include <torch/torch.h>

#include <numeric>

#include "lerobot/formats/json.hpp"
#include "support/collecting_logger.hpp"
#include "support/expect_error.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::Json;
using lerobot::data::EpisodeAwareSampler;
using lerobot::data::SamplerOptions;
using Ints = std::vector<std::int64_t>;

Json golden(const char* name) {
  return lerobot::formats::read_json(std::string(LEROBOT_TEST_DATA) + "/sampler/" + name, ErrorKind::kDataset);
}

Ints frames(const EpisodeAwareSampler& sampler, std::int64_t epoch) {
  Ints out;
  const at::Tensor order = sampler.order(epoch);
  for (std::int64_t i = 0; i < order.numel(); ++i) out.push_back(sampler.frame(order[i].item<std::int64_t>()));
  return out;
}

EpisodeAwareSampler sampler_of(const Ints& from, const Ints& to, const SamplerOptions& options) {
  lerobot::test::CollectingLogger logger;
  return {from, to, options, logger};
}

}  // namespace

TEST_CASE("epoch_seed: equals NumPy's SeedSequence", "[sampler]") {
  for (const Json& entry : golden("randperm_and_seedsequence.json")["seed_sequence"]) {
    INFO(entry.dump());
    const auto seed = entry["entropy"][0].get<std::uint64_t>(), epoch = entry["entropy"][1].get<std::uint64_t>();
    CHECK(lerobot::data::epoch_seed(seed, epoch) == std::stoull(entry["uint64"].get<std::string>()));
  }
  CHECK(lerobot::data::epoch_seed(123456789012, 5) == 1945770216137619916U);
}

TEST_CASE("EpisodeAwareSampler: every recorded order of LeRobot (Python)", "[sampler]") {
  const Json all = golden("episode_aware_sampler.json");
  const Ints from = all["dataset_from_index"], to = all["dataset_to_index"];
  int compared = 0;
  for (const Json& entry : all["shuffled"]) {
    const Json& given = entry["options"];
    SamplerOptions options{.seed = entry["seed"]};
    options.drop_n_first_frames = given.value("drop_n_first_frames", 0);
    options.drop_n_last_frames = given.value("drop_n_last_frames", 0);
    if (given.contains("episode_indices_to_use")) options.episodes = given["episode_indices_to_use"].get<Ints>();
    const EpisodeAwareSampler sampler = sampler_of(from, to, options);
    CHECK(sampler.num_frames() == entry["length"].get<std::int64_t>());
    for (const Json& epoch : entry["epochs"]) {
      INFO("seed " << entry["seed"] << " options " << given.dump() << " epoch " << epoch["epoch"]);
      CHECK(frames(sampler, epoch["epoch"]) == epoch["order"].get<Ints>());
      ++compared;
    }
  }
  CHECK(compared == 18);
  const Ints plain = frames(sampler_of(from, to, {.shuffle = false}), 0);
  CHECK(Ints(plain.begin(), plain.begin() + 20) == all["unshuffled_first20"].get<Ints>());
}

TEST_CASE("EpisodeAwareSampler: drops and choice of episodes", "[sampler]") {
  const Ints from{0, 2, 3}, to{2, 3, 6};
  CHECK(frames(sampler_of(from, to, {.drop_n_first_frames = 1, .shuffle = false}), 0) == Ints{1, 4, 5});
  CHECK(frames(sampler_of(from, to, {.drop_n_last_frames = 1, .shuffle = false}), 0) == Ints{0, 3, 4});
  CHECK(frames(sampler_of(from, to, {.episodes = Ints{2, 0}, .shuffle = false}), 0) == Ints{0, 1, 3, 4, 5});
  CHECK(frames(sampler_of({0, 5, 9}, {5, 9, 16}, {.drop_n_last_frames = 2, .seed = 1000}), 0) ==
        Ints{2, 0, 9, 13, 1, 12, 11, 5, 10, 6});
  CHECK(frames(sampler_of({0, 5, 9}, {5, 9, 16}, {.drop_n_last_frames = 2, .seed = 1000}), 1) ==
        Ints{6, 0, 12, 10, 2, 1, 13, 9, 11, 5});
}

TEST_CASE("EpisodeAwareSampler: an epoch is a permutation, and the global generator has no say in it", "[sampler]") {
  for (const std::int64_t n : {1, 2, 3, 37, 64, 100})
    for (const std::uint64_t seed : {0, 1, 1234}) {
      const EpisodeAwareSampler sampler = sampler_of({0}, {n}, {.seed = seed});
      const Ints first = frames(sampler, 0);
      const at::Tensor next = at::rand({1});
      torch::manual_seed(7);
      (void)at::rand({3});
      CHECK(frames(sampler_of({0}, {n}, {.seed = seed}), 0) == first);
      Ints sorted = first, all(static_cast<std::size_t>(n));
      std::sort(sorted.begin(), sorted.end());
      std::iota(all.begin(), all.end(), 0);
      CHECK(sorted == all);
      if (n > 30) CHECK(frames(sampler, 1) != first);
      CHECK(frames(sampler, 0) == first);
    }
  torch::manual_seed(3);
  const at::Tensor expected = at::rand({4});
  torch::manual_seed(3);
  (void)sampler_of({0}, {100}, {}).order(5);
  CHECK(at::equal(at::rand({4}), expected));
}

TEST_CASE("EpisodeAwareSampler: one episode of a million frames", "[sampler]") {
  const EpisodeAwareSampler sampler = sampler_of({0}, {1'000'000}, {.drop_n_first_frames = 10});
  CHECK(sampler.num_frames() == 999'990);
  CHECK(sampler.frame(0) == 10);
  CHECK(sampler.frame(999'989) == 999'999);
}

TEST_CASE("EpisodeAwareSampler: episodes that the drops empty (case D7)", "[sampler]") {
  lerobot::test::CollectingLogger logger;
  const Ints from{0, 3}, to{3, 13};
  const EpisodeAwareSampler sampler(from, to, {.drop_n_last_frames = 5}, logger);
  CHECK(sampler.num_frames() == 5);
  REQUIRE(logger.warnings.size() == 1);
  CHECK_THAT(logger.warnings[0], Catch::Matchers::Contains("Episode 0"));
  lerobot::test::expect_error(ErrorKind::kConfig, {"No valid frames remain"}, [&] {
    EpisodeAwareSampler(from, Ints{3, 6}, {.drop_n_last_frames = 5}, logger);
  });
}

TEST_CASE("EpisodeAwareSampler: refuses wrong arguments by name", "[sampler]") {
  using lerobot::test::expect_error;
  expect_error(ErrorKind::kConfig, {"drop_n_first_frames", "-1", "must be >= 0"},
               [] { sampler_of({0}, {5}, {.drop_n_first_frames = -1}); });
  expect_error(ErrorKind::kConfig, {"drop_n_last_frames", "-1", "must be >= 0"},
               [] { sampler_of({0}, {5}, {.drop_n_last_frames = -1}); });
  expect_error(ErrorKind::kConfig, {"1 episode starts", "2 episode ends"}, [] { sampler_of({0}, {5, 6}, {}); });
}
