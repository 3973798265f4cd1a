#include "lerobot/train/metrics.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"

using lerobot::train::Meter;
using lerobot::train::MetricsTracker;
using lerobot::train::Reduction;

TEST_CASE("format_big_number: thousands become suffixes and ties go to even", "[metrics]") {
  using lerobot::train::format_big_number;
  const std::vector<std::pair<double, std::string>> cases{
      {63, "63"},        {999, "999"}, {1000, "1K"}, {1500, "2K"},      {7712, "8K"},
      {999999, "1000K"}, {1e6, "1M"},  {12.5, "12"}, {51200000, "51M"}, {2500, "2K"}};
  for (const auto& [number, text] : cases) CHECK(format_big_number(number) == text);
}

TEST_CASE("Meter: value, sum, count and average of a window", "[metrics]") {
  Meter meter("metric", "metric", ".1f", Reduction::kMean);
  CHECK(meter.text() == "metric:0.0");
  meter.update(4.567, 3);
  CHECK(meter.text() == "metric:4.6");
  CHECK(meter.sum() == Approx(13.701));
  CHECK(meter.count() == 3);
  meter.update(torch::tensor(1.0F));
  CHECK(meter.count() == 4);
  CHECK(meter.value() == 1.0);
  CHECK(meter.average() == Approx(14.701 / 4));
  meter.set_average(2.0);
  CHECK(meter.sum() == 8.0);
  meter.reset();
  CHECK(meter.value() == 0);
  CHECK(meter.sum() == 0);
  CHECK(meter.count() == 0);
  CHECK(meter.average() == 0);
}

TEST_CASE("MetricsTracker: the line counts samples, episodes and epochs of the whole job", "[metrics]") {
  MetricsTracker tracker({.batch_size = 8, .dp_world = 4, .num_frames = 1000, .num_episodes = 10}, 150, 150 * 32, false,
                         false);
  tracker.step();
  tracker.at("loss").update(1.23456);
  tracker.at("lr").update(2.5e-4);
  CHECK(tracker.line().rfind("step:151 smpl:5K ep:48 epch:4.83 loss:1.235 grdn:0.000 lr:2.5e-04", 0) == 0);
  CHECK_THROWS_AS(tracker.at("nope"), lerobot::Error);
  const lerobot::Json json = tracker.to_json();
  CHECK(json["samples"] == 4832);
  CHECK(json["loss"].get<double>() == Approx(1.23456));
}

TEST_CASE("MetricsTracker: policy outputs join the line, but never replace a standard meter", "[metrics]") {
  MetricsTracker tracker({}, 0, 0, false, false);
  tracker.at("loss").update(1.0);
  tracker.update_outputs({{"loss", torch::tensor(99.0F)}, {"extra", torch::tensor(0.25F)}});
  CHECK(tracker.at("loss").average() == 1.0);
  CHECK(tracker.at("extra").average() == 0.25);
  CHECK(tracker.line().find("extra:0.250") != std::string::npos);
}

TEST_CASE("MetricsTracker: throughput is that of the cluster", "[metrics]") {
  MetricsTracker tracker({.batch_size = 8, .dp_world = 4, .num_frames = 1000, .num_episodes = 10}, 0, 0, false, false);
  tracker.at("step_s").update(0.5);
  tracker.update_throughput();
  CHECK(tracker.at("samples_per_s").average() == 64.0);
}

TEST_CASE("parse_reduction: an unknown name is an error", "[metrics]") {
  CHECK(lerobot::train::parse_reduction("max") == Reduction::kMax);
  CHECK_THROWS_AS(lerobot::train::parse_reduction("median"), lerobot::Error);
}
