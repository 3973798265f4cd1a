#include "lerobot/data/stats.hpp"

#include <torch/torch.h>

#include <array>
#include <fstream>

#include "lerobot/data/metadata.hpp"
#include "support/collecting_logger.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::data::FeatureStats;
using lerobot::data::Stats;
using lerobot::test::expect_error;

/// Statistics of rows [n, d] by definition.
FeatureStats of(const at::Tensor& rows) {
  const at::Tensor x = rows.to(at::kDouble);
  return {{"min", x.amin(0)},
          {"max", x.amax(0)},
          {"mean", x.mean(0)},
          {"std", x.std(0, false)},
          {"count", at::tensor({rows.size(0)}, at::kLong)},
          {"q01", x.amin(0) + 0.5},
          {"q99", x.amax(0) - 0.5}};
}

}  // namespace

TEST_CASE("read_stats: shapes and values of a recorded dataset", "[stats]") {
  const Stats stats = lerobot::data::read_stats(std::string(LEROBOT_TEST_DATA) + "/datasets/pusht_mini");
  CHECK(stats.at("observation.state").at("mean").sizes() == at::IntArrayRef{2});
  CHECK(stats.at("observation.state").at("min")[0].item<double>() == 5.116161823272705);
  CHECK(stats.at("observation.image").at("mean").sizes() == at::IntArrayRef({3, 1, 1}));
  CHECK(stats.at("episode_index").at("count").item<std::int64_t>() == 482);
  CHECK(lerobot::data::read_stats(std::string(LEROBOT_TEST_DATA)).empty());
}

TEST_CASE("read_stats: irregular arrays are refused by name", "[stats]") {
  const lerobot::test::TempDir dir;
  std::filesystem::create_directories(dir.path() / "meta");
  for (const char* text :
       {R"({"a": {"mean": [[1], [2, 3]]}})", R"({"a": {"mean": [1, [2]]}})", R"({"a": {"mean": ["x"]}})",
        R"({"a": {"mean": [[1], 2]}})", R"({"a": 3})", R"({"a": {"mean": [[[[[[[1]]]]]]]}})"}) {
    std::ofstream(dir.path() / "meta" / "stats.json") << text;
    INFO(text);
    expect_error(ErrorKind::kDataset, {"\"a\""}, [&] { (void)lerobot::data::read_stats(dir.path()); });
  }
}

TEST_CASE("aggregate_stats: pools to the statistics of all rows", "[stats]") {
  torch::manual_seed(5);
  const at::Tensor rows = at::randn({30, 3}, at::kDouble) * 4 + 1;
  const at::Tensor first = rows.slice(0, 0, 4), second = rows.slice(0, 4, 13), third = rows.slice(0, 13, 30);
  const std::array parts{Stats{{"x", of(first)}}, Stats{{"x", of(second)}, {"only", of(second)}},
                         Stats{{"x", of(third)}}};
  const Stats pooled = lerobot::data::aggregate_stats(parts);
  REQUIRE(pooled.size() == 2);
  const FeatureStats expected = of(rows);
  for (const char* name : {"min", "max", "mean", "std", "count"}) {
    INFO(name);
    CHECK(at::allclose(pooled.at("x").at(name).to(at::kDouble), expected.at(name).to(at::kDouble), 1e-12, 1e-12));
  }
  const at::Tensor low =
      at::minimum(at::minimum(parts[0].at("x").at("q01"), parts[1].at("x").at("q01")), parts[2].at("x").at("q01"));
  CHECK(at::equal(pooled.at("x").at("q01"), low));
  const at::Tensor high =
      at::maximum(at::maximum(parts[0].at("x").at("q99"), parts[1].at("x").at("q99")), parts[2].at("x").at("q99"));
  CHECK(at::equal(pooled.at("x").at("q99"), high));
}

TEST_CASE("aggregate_stats: a quantile that one part lacks is left out", "[stats]") {
  FeatureStats without = of(at::rand({5, 2}));
  without.erase("q99");
  const std::array parts{Stats{{"x", of(at::rand({5, 2}))}}, Stats{{"x", without}}};
  const Stats pooled = lerobot::data::aggregate_stats(parts);
  CHECK(pooled.at("x").contains("q01"));
  CHECK_FALSE(pooled.at("x").contains("q99"));
}

TEST_CASE("aggregate_stats: refuses scalars, odd counts and flat image statistics", "[stats]") {
  const auto refuses = [](const char* feature, const char* name, const at::Tensor& value, const char* fragment) {
    Stats part{{feature, of(at::rand({5, 3}))}};
    part[feature][name] = value;
    expect_error(ErrorKind::kDataset, {feature, fragment},
                 [&] { (void)lerobot::data::aggregate_stats(std::array{part}); });
  };
  refuses("x", "mean", at::scalar_tensor(1.0), "scalar");
  refuses("x", "count", at::ones({2}, at::kLong), "count");
  refuses("observation.image", "count", at::ones({1}, at::kLong), "(3,1,1)");
}

TEST_CASE("use_imagenet_stats: replaces mean and std of colour cameras only", "[stats]") {
  lerobot::test::CollectingLogger logger;
  auto metadata = lerobot::data::read_metadata(std::string(LEROBOT_TEST_DATA) + "/datasets/pusht_mini", logger);
  const at::Tensor min = metadata.stats.at("observation.image").at("min");
  const at::Tensor state = metadata.stats.at("observation.state").at("mean");
  lerobot::data::use_imagenet_stats(metadata.stats, metadata.info);
  const FeatureStats& image = metadata.stats.at("observation.image");
  CHECK(image.at("mean").scalar_type() == at::kFloat);
  CHECK(at::equal(image.at("mean"), at::tensor({0.485F, 0.456F, 0.406F}).view({3, 1, 1})));
  CHECK(at::equal(image.at("std"), at::tensor({0.229F, 0.224F, 0.225F}).view({3, 1, 1})));
  CHECK(image.at("min").is_same(min));
  CHECK(metadata.stats.at("observation.state").at("mean").is_same(state));
  metadata.stats.clear();
  lerobot::data::use_imagenet_stats(metadata.stats, metadata.info);
  CHECK(metadata.stats.size() == 1);
}
