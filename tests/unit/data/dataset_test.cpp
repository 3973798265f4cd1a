#include "lerobot/data/dataset.hpp"

#include <torch/torch.h>

#include <fstream>

#include "lerobot/formats/json.hpp"
#include "support/expect_error.hpp"
#include "unit/data/fixtures.hpp"

namespace {

namespace fs = std::filesystem;
using lerobot::ErrorKind;
using lerobot::Json;
using lerobot::data::Batch;
using lerobot::data::DatasetOptions;
using lerobot::data::Sample;
using lerobot::test::expect_error;
using lerobot::test::Fixture;
using lerobot::test::ints;
using lerobot::test::kDatasets;
using lerobot::test::open_dataset;
using lerobot::test::read_tensor;
using lerobot::test::seconds;
using Ints = std::vector<std::int64_t>;

std::vector<double> chunk(int steps) {
  std::vector<double> out;
  for (int i = 0; i < steps; ++i) out.push_back(i / 10.0);
  return out;
}

/// Compares every recorded sample; gives the largest picture difference, in 1/255.
double compare_golden(const char* name, const DatasetOptions& options) {
  const fs::path root = kDatasets / name;
  const Json expected = lerobot::formats::read_json(root / "expected_samples.json", ErrorKind::kDataset);
  const lerobot::formats::SafetensorsFile file(root / "expected_samples.safetensors");
  const auto dataset = open_dataset(root, options);
  CHECK(dataset->num_frames() == expected["num_frames"].get<std::int64_t>());
  double worst = 0;
  const Ints indices = expected["indices"];
  const Batch batch = dataset->collate(indices);
  for (std::size_t b = 0; b < indices.size(); ++b) {
    const std::int64_t index = indices[b];
    const Sample sample = dataset->item(index);
    std::size_t seen = 0;
    for (const auto& [feature, what] : expected["features"].items()) {
      INFO(name << " sample " << index << " feature " << feature);
      REQUIRE(sample.tensors.contains(feature));
      at::Tensor got = sample.tensors.at(feature);
      CHECK(at::equal(got, batch.tensors.at(feature)[static_cast<std::int64_t>(b)]));
      got = lerobot::data::to_float_image(got);
      const at::Tensor want = read_tensor(file, std::to_string(index) + "/" + feature);
      REQUIRE(got.sizes() == want.sizes());
      REQUIRE(got.scalar_type() == want.scalar_type());
      ++seen;
      if (feature == "observation.image") {
        const at::Tensor difference = (got - want).abs() * 255;
        worst = std::max(worst, difference.max().item<double>());
        CHECK(difference.mean().item<double>() < 0.5);
      } else {
        CHECK(at::equal(got, want));
      }
    }
    CHECK(seen == sample.tensors.size());
    CHECK(sample.task == expected["strings"][std::to_string(index)]["task"].get<std::string>());
    CHECK(batch.task[b] == sample.task);
  }
  return worst;
}

}  // namespace

TEST_CASE("Dataset: recorded samples without pictures are equal", "[dataset]") {
  compare_golden("pusht_mini_state", {.delta_timestamps = {{"action", chunk(10)}}});
}

TEST_CASE("Dataset: recorded samples with PNG pictures are equal", "[dataset]") {
  CHECK(compare_golden("pusht_mini_images", {.delta_timestamps = {{"action", chunk(10)}}}) == 0);
  CHECK(compare_golden("pusht_mini_images", {.delta_timestamps = {{"action", chunk(10)}}, .return_uint8 = true}) == 0);
}

TEST_CASE("Dataset: recorded samples with AV1 video are equal", "[dataset]") {
  // Allowed: 2/255. With dav1d and swscale, as torchcodec and PyAV use them, nothing differs.
  CHECK(compare_golden("pusht_mini", {.delta_timestamps = {{"action", chunk(10)}}}) == 0);
  CHECK(compare_golden("pusht_mini", {.delta_timestamps = {{"action", chunk(10)}}, .return_uint8 = true}) == 0);
}

TEST_CASE("Dataset: windows of past and future are clamped to the episode and masked", "[dataset]") {
  const Fixture fixture({.lengths = {4, 3}, .task_of_episode = {0, 1}});
  const auto dataset =
      fixture.open({.delta_timestamps = {{"action", seconds({0, 1, 2})}, {"observation.state", seconds({-1, 0})}}});
  const Sample third = dataset->item(3);
  CHECK(ints(third.tensors.at("action").select(1, 0)) == Ints{3, 3, 3});
  CHECK(ints(third.tensors.at("action_is_pad")) == Ints{0, 1, 1});
  CHECK(ints(third.tensors.at("observation.state").select(1, 0)) == Ints{2, 3});
  CHECK(ints(third.tensors.at("observation.state_is_pad")) == Ints{0, 0});
  CHECK(third.task == "task 0");
  const Sample fourth = dataset->item(4);
  CHECK(ints(fourth.tensors.at("observation.state").select(1, 0)) == Ints{4, 4});
  CHECK(ints(fourth.tensors.at("observation.state_is_pad")) == Ints{1, 0});
  CHECK(fourth.task == "task 1");
  CHECK(fourth.tensors.at("timestamp").dim() == 0);
}

TEST_CASE("Dataset: windows with gaps, far out on both sides", "[dataset]") {
  const Fixture fixture({.lengths = {4, 6}});
  const auto dataset = fixture.open(
      {.delta_timestamps = {{"action", seconds({-9, -2, 0, 3, 20})}, {"index", seconds({-3, -2, -1, 0, 1})}}});
  const Sample sample = dataset->item(6);
  CHECK(ints(sample.tensors.at("action").select(1, 0)) == Ints{4, 4, 6, 9, 9});
  CHECK(ints(sample.tensors.at("action_is_pad")) == Ints{1, 0, 0, 0, 1});
  CHECK(ints(sample.tensors.at("index")) == Ints{4, 4, 5, 6, 7});
  CHECK(ints(dataset->item(9).tensors.at("index")) == Ints{6, 7, 8, 9, 9});
  CHECK(ints(dataset->item(0).tensors.at("index")) == Ints{0, 0, 0, 0, 1});
}

TEST_CASE("Dataset: some episodes, with an action window (case D1)", "[dataset]") {
  const Fixture fixture({.lengths = {5, 5, 5}});
  const auto action = std::map<std::string, std::vector<double>>{{"action", seconds({0, 1, 2, 3})}};
  const auto dataset = fixture.open({.episodes = Ints{2}, .delta_timestamps = action});
  REQUIRE(dataset->num_frames() == 5);
  for (std::int64_t i = 0; i < 5; ++i) {
    CHECK(dataset->item(i).tensors.at("index").item<std::int64_t>() == 10 + i);
    CHECK(dataset->position(10 + i) == i);
  }
  CHECK(ints(dataset->item(0).tensors.at("action").select(1, 0)) == Ints{10, 11, 12, 13});
  CHECK(ints(dataset->item(0).tensors.at("action_is_pad")) == Ints{0, 0, 0, 0});
  CHECK(ints(dataset->item(4).tensors.at("action").select(1, 0)) == Ints{14, 14, 14, 14});
  CHECK(ints(dataset->item(4).tensors.at("action_is_pad")) == Ints{0, 1, 1, 1});

  const auto both = fixture.open({.episodes = Ints{2, 0}}), sorted = fixture.open({.episodes = Ints{0, 2}});
  CHECK(at::equal(both->column("index"), sorted->column("index")));
  CHECK(both->episodes() == Ints{2, 0});
  CHECK(both->position(10) == 5);
  expect_error(ErrorKind::kInternal, {"frame 7"}, [&] { (void)both->position(7); });

  const auto refuse = [&](const Ints& episodes, std::initializer_list<std::string> fragments) {
    expect_error(ErrorKind::kConfig, fragments, [&] { (void)fixture.open({.episodes = episodes}); });
  };
  refuse({1, 1}, {"duplicates [1]", "0..2"});
  refuse({-1}, {"[-1]", "non-negative", "0..2"});
  refuse({7}, {"[7]", "0..2"});
  refuse({}, {"no episode is left"});
}

TEST_CASE("select_episodes: exclusion, with a warning for what is not there", "[dataset]") {
  lerobot::test::CollectingLogger logger;
  CHECK(lerobot::data::select_episodes(Ints{3, 1, 0}, {1, 2}, 4, logger) == Ints{3, 0});
  CHECK(logger.warnings.empty());
  CHECK(lerobot::data::select_episodes(std::nullopt, {-2, 1, -1, 3}, 5, logger) == Ints{0, 2, 4});
  REQUIRE(logger.warnings.size() == 1);
  CHECK_THAT(logger.warnings[0],
             Catch::Matchers::Contains("exclude_episodes") && Catch::Matchers::Contains("[-2, -1]"));
}

TEST_CASE("Dataset: a filtered set is read to its end (case D2)", "[dataset]") {
  const Fixture fixture({.lengths = {180, 180}});
  const auto dataset =
      fixture.open({.episodes = Ints{1}, .delta_timestamps = {{"observation.state", seconds({-1, 0})}}});
  REQUIRE(dataset->num_frames() == 180);
  for (std::int64_t i = 0; i < 180; ++i) {
    const Sample sample = dataset->item(i);
    CHECK(sample.tensors.at("index").item<std::int64_t>() == 180 + i);
    CHECK(ints(sample.tensors.at("observation.state").select(1, 0)) ==
          Ints{180 + std::max<std::int64_t>(i - 1, 0), 180 + i});
    CHECK(ints(sample.tensors.at("observation.state_is_pad")) == Ints{i == 0, 0});
  }
}

TEST_CASE("Dataset: several data files, read in file order", "[dataset]") {
  const Fixture fixture({.lengths = {3, 4, 2, 5}, .data_file_of_episode = {0, 1, 1, 2}});
  const auto all = fixture.open();
  CHECK(at::equal(all->column("index"), at::arange(14)));
  const auto some = fixture.open({.episodes = Ints{3, 1}});
  CHECK(ints(some->column("index")) == Ints{3, 4, 5, 6, 9, 10, 11, 12, 13});
  fs::remove(fixture.dir.path() / "data/chunk-000/file-002.parquet");
  CHECK(fixture.open({.episodes = Ints{0, 2}})->num_frames() == 5);  // the missing file is not needed
  expect_error(ErrorKind::kDataset, {"file-002.parquet"}, [&] { (void)fixture.open(); });
}

TEST_CASE("Dataset: cameras cut into files differently from the table (case D3)", "[dataset]") {
  const Fixture fixture({.lengths = {5, 7, 3, 6},
                         .cameras = {{.key = "observation.images.a", .file_of_episode = {0, 1, 1, 2}},
                                     {.key = "observation.images.b", .file_of_episode = {0, 0, 0, 1}, .gop = 4}}});
  const auto dataset = fixture.open({.return_uint8 = true});
  const auto level_of = [](const at::Tensor& picture) {
    CHECK(picture.min().item<int>() == picture.max().item<int>());
    return picture.max().item<int>();
  };
  Ints backwards;
  for (std::int64_t i = 0; i < 21; ++i) {
    const Sample sample = dataset->item(i);
    CHECK(level_of(sample.tensors.at("observation.images.a")) == lerobot::test::default_level(i));
    CHECK(level_of(sample.tensors.at("observation.images.b")) == lerobot::test::default_level(i));
    backwards.push_back(20 - i);
  }
  const Batch batch = dataset->collate(backwards);
  for (std::int64_t i = 0; i < 21; ++i)
    CHECK(level_of(batch.tensors.at("observation.images.a")[i]) == lerobot::test::default_level(20 - i));
}

TEST_CASE("Dataset: second episode inside one camera file (case D9)", "[dataset]") {
  const Fixture fixture({.lengths = {5, 5}, .cameras = {{}}});
  const auto dataset = fixture.open({.episodes = Ints{1}, .return_uint8 = true});
  const Sample sample = dataset->item(0);
  CHECK(sample.tensors.at("timestamp").item<float>() == 0.0F);
  CHECK(sample.tensors.at("observation.images.front").max().item<int>() == lerobot::test::default_level(5));
}

TEST_CASE("Dataset: windows of video frames", "[dataset]") {
  const Fixture fixture({.lengths = {5, 5}, .cameras = {{}}});
  const auto dataset =
      fixture.open({.delta_timestamps = {{"observation.images.front", seconds({-2, -1, 0})}}, .return_uint8 = true});
  const Sample sample = dataset->item(6);
  const at::Tensor& frames = sample.tensors.at("observation.images.front");
  REQUIRE(frames.sizes() == at::IntArrayRef({3, 3, 32, 32}));
  for (std::int64_t k = 0; k < 3; ++k)
    CHECK(frames[k].max().item<int>() == lerobot::test::default_level(Ints{5, 5, 6}[static_cast<std::size_t>(k)]));
  CHECK(ints(sample.tensors.at("observation.images.front_is_pad")) == Ints{1, 0, 0});
}

TEST_CASE("Dataset: a timestamp off by 0.03 s (case D8)", "[dataset]") {
  const Fixture fixture({.lengths = {5, 5}, .cameras = {{}}, .timestamp_shift = {{7, 0.03}}});
  const auto strict = fixture.open();
  CHECK(strict->item(6).tensors.size() > 0);
  expect_error(ErrorKind::kDataset,
               {"index 7", "episode 1", "frame 2", "0.730000 s", "0.700000 s", "tolerance_s is 0.0001",
                "--dataset.exclude_episodes='[1]'"},
               [&] { (void)strict->item(7); });
  CHECK(strict->item(8).tensors.at("observation.images.front").dim() == 3);
  const auto loose = fixture.open({.tolerance_s = 0.05, .return_uint8 = true});
  CHECK(loose->item(7).tensors.at("observation.images.front").max().item<int>() == lerobot::test::default_level(7));
}

TEST_CASE("Dataset: a picture that is white everywhere is 1.0 everywhere (case D11)", "[dataset]") {
  for (const bool video : {false, true})
    for (const bool uint8 : {false, true}) {
      const Fixture fixture({.lengths = {2}, .cameras = {{.video = video}}, .level = [](std::int64_t) { return 255; }});
      Batch batch = fixture.open({.return_uint8 = uint8})->collate(Ints{0, 1});
      CHECK(batch.tensors.at("observation.images.front").scalar_type() == (uint8 ? at::kByte : at::kFloat));
      lerobot::data::to_float_images(batch, {"observation.images.front", "observation.images.absent"});
      CHECK(at::equal(batch.tensors.at("observation.images.front"), at::ones({2, 3, 32, 32})));
    }
}

TEST_CASE("Dataset: depth maps in 16-bit PNG, in both units", "[dataset]") {
  const Fixture fixture({.lengths = {4}, .cameras = {{.video = false, .depth = true}}});
  const at::Tensor mm = fixture.open({.return_uint8 = true})->item(3).tensors.at("observation.images.front");
  CHECK(at::equal(mm, at::full({1, 32, 32}, 3.0F)));
  const at::Tensor m = fixture.open({.depth_output_unit = lerobot::data::DepthUnit::kMetre})
                           ->item(3)
                           .tensors.at("observation.images.front");
  CHECK(at::equal(m, at::full({1, 32, 32}, 3.0F / 1000.0F)));
}

TEST_CASE("Dataset: offsets that are no whole frames are refused", "[dataset]") {
  const Fixture fixture({.lengths = {4}});
  expect_error(ErrorKind::kConfig, {"action", "0.05", "1/10"}, [&] {
    (void)fixture.open({.delta_timestamps = {{"action", {0.0, 0.05}}}});
  });
  expect_error(ErrorKind::kConfig, {"nonsense"}, [&] {
    (void)fixture.open({.delta_timestamps = {{"nonsense", {0.0}}}});
  });
  CHECK(fixture.open({.delta_timestamps = {{"action", {0.1 + 5e-5}}}})
            ->item(0)
            .tensors.at("action")[0][0]
            .item<float>() == 1.0F);
}

TEST_CASE("Dataset: damaged files are refused with their name", "[dataset]") {
  const fs::path malformed = fs::path(LEROBOT_TEST_DATA) / "malformed";
  expect_error(ErrorKind::kDataset, {"file-000.parquet"},
               [&] { (void)open_dataset(malformed / "dataset_parquet_truncated"); });
  const auto dataset = open_dataset(malformed / "dataset_mp4_truncated", {.return_uint8 = true});
  CHECK(dataset->item(0).tensors.at("observation.image").dim() == 3);
  expect_error(ErrorKind::kDataset, {"observation.image", "index 481", "episode 7", "file-000.mp4"},
               [&] { (void)dataset->item(481); });
  // The frames before the cut stay readable after the failure.
  CHECK(dataset->item(1).tensors.at("observation.image").dim() == 3);
}

TEST_CASE("Dataset: every cut of a parquet or mp4 file gives an Error or the right frames", "[dataset]") {
  const Fixture fixture({.lengths = {6}, .cameras = {{.height = 16, .width = 16}}});
  const fs::path root = fixture.dir.path();
  for (const char* name : {"data/chunk-000/file-000.parquet", "meta/episodes/chunk-000/file-000.parquet",
                           "meta/tasks.parquet", "videos/observation.images.front/chunk-000/file-000.mp4"}) {
    const auto size = fs::file_size(root / name);
    std::string whole(size, '\0');
    std::ifstream(root / name, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(size));
    for (std::size_t keep = 0; keep < size; keep += size / 23 + 1) {
      INFO(name << " cut to " << keep << " of " << size);
      std::ofstream(root / name, std::ios::binary) << whole.substr(0, keep);
      try {
        const auto dataset = fixture.open({.return_uint8 = true});
        for (std::int64_t i = 0; i < 6; ++i) {
          const Sample sample = dataset->item(i);
          CHECK(sample.tensors.at("observation.images.front").max().item<int>() == lerobot::test::default_level(i));
        }
        CHECK(std::string(name).find("videos") == 0);
      } catch (const lerobot::Error& e) {
        CHECK(e.kind() == ErrorKind::kDataset);
      }
    }
    std::ofstream(root / name, std::ios::binary) << whole;
  }
  CHECK(fixture.open()->num_frames() == 6);
}

TEST_CASE("Dataset: data and meta that disagree are refused", "[dataset]") {
  const Fixture fixture({.lengths = {4, 4}}), other({.lengths = {3, 5}}), longer({.lengths = {4, 4, 1}});
  const fs::path data = "data/chunk-000/file-000.parquet", episodes = "meta/episodes/chunk-000/file-000.parquet";
  fs::copy_file(other.dir.path() / data, fixture.dir.path() / data, fs::copy_options::overwrite_existing);
  expect_error(ErrorKind::kDataset, {"episode 1, index 3", "episode 0, index 3"}, [&] { (void)fixture.open(); });
  fs::copy_file(longer.dir.path() / episodes, fixture.dir.path() / episodes, fs::copy_options::overwrite_existing);
  expect_error(ErrorKind::kDataset, {"2 episodes and 8 frames", "3 and 9"}, [&] { (void)fixture.open(); });
}

TEST_CASE("Dataset: a missing video is refused at opening", "[dataset]") {
  const Fixture fixture({.lengths = {4, 4}, .cameras = {{.file_of_episode = {0, 1}}}});
  fs::remove(fixture.dir.path() / "videos/observation.images.front/chunk-000/file-001.mp4");
  expect_error(ErrorKind::kDataset, {"file-001.mp4", "episode 1"}, [&] { (void)fixture.open(); });
  CHECK(fixture.open({.episodes = Ints{0}})->num_frames() == 4);
}
