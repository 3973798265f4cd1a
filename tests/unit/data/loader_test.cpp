#include "lerobot/data/loader.hpp"

#include <torch/torch.h>

#include <chrono>
#include <thread>

#include "lerobot/data/video.hpp"
#include "support/expect_error.hpp"
#include "unit/data/fixtures.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::data::Batch;
using lerobot::data::EvalLoader;
using lerobot::data::Loader;
using lerobot::data::LoaderOptions;
using lerobot::data::Progress;
using lerobot::test::CollectingLogger;
using lerobot::test::expect_error;
using lerobot::test::Fixture;
using lerobot::test::ints;
using lerobot::test::kDatasets;
using lerobot::test::open_dataset;
using Ints = std::vector<std::int64_t>;

std::unique_ptr<Loader> loader_of(const std::shared_ptr<lerobot::data::Dataset>& dataset, const LoaderOptions& options,
                                  bool shuffle = false, const Progress& start = {}) {
  CollectingLogger logger;
  auto sampler = lerobot::data::make_sampler(*dataset, {.shuffle = shuffle, .seed = 1000}, logger);
  return std::make_unique<Loader>(dataset, std::move(sampler), options, logger, start);
}

}  // namespace

TEST_CASE("Loader: frames of each rank, in order, epoch after epoch (case D5)", "[loader]") {
  const Fixture fixture({.lengths = {4, 3}});
  const auto dataset = fixture.open();
  for (const int workers : {0, 1, 4}) {
    auto rank0 = loader_of(dataset, {.batch_size = 3, .dp_rank = 0, .dp_world = 2, .num_workers = workers});
    auto rank1 = loader_of(dataset, {.batch_size = 3, .dp_rank = 1, .dp_world = 2, .num_workers = workers});
    for (int epoch = 0; epoch < 5; ++epoch) {
      CHECK(rank0->progress() == Progress{epoch, 0, epoch * 12});
      CHECK(ints(rank0->next().tensors.at("index")) == Ints{0, 1, 2});
      CHECK(rank0->progress() == Progress{epoch, 6, epoch * 12 + 6});
      CHECK(ints(rank0->next().tensors.at("index")) == Ints{6, 0, 1});
      CHECK(ints(rank1->next().tensors.at("index")) == Ints{3, 4, 5});
      CHECK(ints(rank1->next().tensors.at("index")) == Ints{2, 3, 4});
    }
    CHECK(rank0->last_wait_s() >= 0);
  }
}

TEST_CASE("Loader: the order is the sampler's, with any number of threads and after a resume", "[loader]") {
  const auto dataset = open_dataset(kDatasets / "pusht_mini_state", {.episodes = Ints{1, 3, 7}});
  const LoaderOptions inline_options{.batch_size = 8, .num_workers = 0};
  auto reference = loader_of(dataset, inline_options, true);
  auto threaded = loader_of(dataset, {.batch_size = 8, .num_workers = 4, .prefetch_factor = 2}, true);
  std::vector<Ints> batches;
  for (int i = 0; i < 60; ++i) {
    const Batch a = reference->next(), b = threaded->next();
    REQUIRE(at::equal(a.tensors.at("index"), b.tensors.at("index")));
    CHECK(at::equal(a.tensors.at("action"), b.tensors.at("action")));
    batches.push_back(ints(a.tensors.at("index")));
  }
  CHECK(reference->progress().epoch == 2);
  auto before = loader_of(dataset, inline_options, true);
  for (int i = 0; i < 31; ++i) before->next();
  auto after = loader_of(dataset, inline_options, true, before->progress());
  for (std::size_t i = 31; i < 60; ++i) CHECK(ints(after->next().tensors.at("index")) == batches[i]);
}

TEST_CASE("Loader: a resume on another world reads the rest of the epoch once", "[loader]") {
  const auto dataset = open_dataset(kDatasets / "pusht_mini_state", {.episodes = Ints{0, 5}});
  std::vector<int> seen(482, 0);
  const auto count = [&](const Batch& batch) {
    for (const std::int64_t i : ints(batch.tensors.at("index"))) ++seen[static_cast<std::size_t>(i)];
  };
  auto first = loader_of(dataset, {.batch_size = 5, .num_workers = 0}, true);
  for (int i = 0; i < 6; ++i) count(first->next());
  const Progress progress = first->progress();
  for (int rank = 0; rank < 3; ++rank) {
    auto loader =
        loader_of(dataset, {.batch_size = 2, .dp_rank = rank, .dp_world = 3, .num_workers = 2}, true, progress);
    while (loader->progress().epoch == 0) count(loader->next());
  }
  int frames = 0, repeats = 0;
  for (const int n : seen) {
    frames += n > 0 ? 1 : 0;
    repeats += std::max(n - 1, 0);
  }
  CHECK(frames == dataset->num_frames());
  CHECK(repeats < 6);  // the filler of one round
}

TEST_CASE("Loader: a batch that cannot be made fails in its next(), with rank and cause (case L7)", "[loader]") {
  const auto dataset = open_dataset(std::filesystem::path(LEROBOT_TEST_DATA) / "malformed" / "dataset_mp4_truncated",
                                    {.return_uint8 = true});
  for (const int workers : {0, 3}) {
    auto loader = loader_of(dataset, {.batch_size = 100, .dp_rank = 1, .dp_world = 2, .num_workers = workers});
    CHECK(loader->next().tensors.at("observation.image").size(0) == 100);  // frames 100..199
    expect_error(ErrorKind::kDataset, {"rank 1", "epoch 0", "file-000.mp4"}, [&] {
      loader->next();
      loader->next();
    });
    expect_error(ErrorKind::kDataset, {"rank 1"}, [&] { loader->next(); });
  }
}

TEST_CASE("Loader: threads work ahead of the first next()", "[loader]") {
  auto decoders = std::make_shared<lerobot::data::VideoDecoderCache>(std::nullopt);
  const auto dataset = open_dataset(kDatasets / "pusht_mini", {.return_uint8 = true, .decoders = decoders});
  auto idle = loader_of(dataset, {.batch_size = 8, .num_workers = 0}, true);
  CHECK(decoders->num_opened() == 0);
  auto ahead = loader_of(dataset, {.batch_size = 8, .num_workers = 1}, true);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (decoders->num_opened() == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(decoders->num_opened() == 1);  // nobody has asked for a batch yet
}

TEST_CASE("Loader: is destroyed at once while threads work ahead", "[loader]") {
  const auto dataset = open_dataset(kDatasets / "pusht_mini", {.return_uint8 = true});
  for (int i = 0; i < 5; ++i) {
    auto loader = loader_of(dataset, {.batch_size = 4, .num_workers = 4, .prefetch_factor = 8}, true);
    if (i % 2 == 1) (void)loader->next();
  }
}

TEST_CASE("Loader: refuses settings by name", "[loader]") {
  const Fixture fixture({.lengths = {4}});
  const auto dataset = fixture.open();
  expect_error(ErrorKind::kConfig, {"batch_size", "0"}, [&] { (void)loader_of(dataset, {.batch_size = 0}); });
  expect_error(ErrorKind::kConfig, {"num_workers", "-1"}, [&] { (void)loader_of(dataset, {.num_workers = -1}); });
  expect_error(ErrorKind::kConfig, {"prefetch_factor", "0"}, [&] { (void)loader_of(dataset, {.prefetch_factor = 0}); });
  expect_error(ErrorKind::kConfig, {"rank 2", "2"}, [&] { (void)loader_of(dataset, {.dp_rank = 2, .dp_world = 2}); });
  if (!at::hasCUDA())
    expect_error(ErrorKind::kConfig, {"pin_memory"}, [&] { (void)loader_of(dataset, {.pin_memory = true}); });
}

TEST_CASE("EvalLoader: every frame once over all ranks, equally many rounds (case D6)", "[loader]") {
  const Fixture fixture({.lengths = {5}});
  const auto dataset = fixture.open();
  for (const int world : {1, 2, 4})
    for (const int workers : {0, 2}) {
      std::vector<int> seen(5, 0);
      for (int rank = 0; rank < world; ++rank) {
        EvalLoader loader(dataset, {0, 1, 2, 3, 4},
                          {.batch_size = 2, .dp_rank = rank, .dp_world = world, .num_workers = workers});
        for (int pass = 0; pass < 2; ++pass) {
          std::int64_t rounds = 0;
          for (; auto next = loader.next(); ++rounds) {
            CHECK(next->batch.tensors.at("index").numel() > 0);
            if (next->counts)
              for (const std::int64_t i : ints(next->batch.tensors.at("index"))) ++seen[static_cast<std::size_t>(i)];
          }
          CHECK(rounds == loader.num_rounds());
          CHECK(rounds == (3 + world - 1) / world);
        }
      }
      CHECK(seen == std::vector<int>(5, 2));
    }
}
