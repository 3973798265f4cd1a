#include "lerobot/checkpoint/training_step.hpp"

#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"
#include "lerobot/formats/json.hpp"
#include "support.hpp"

using namespace lerobot;
using namespace lerobot::test;
using checkpoint::training_step_from_json;

TEST_CASE("training_step: files of real runs are read and written back byte for byte", "[training_step][unit]") {
  int num_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kGolden)) {
    if (entry.path().filename() != "training_step.json") continue;
    INFO(entry.path());
    const auto value =
        training_step_from_json(formats::read_json(entry.path(), ErrorKind::kCheckpoint), entry.path().string());
    CHECK(formats::dump_python(checkpoint::to_json(value), 4, false) == slurp(entry.path()));
    ++num_files;
  }
  CHECK(num_files >= 10);
}

TEST_CASE("training_step: progress comes last and survives a round trip", "[training_step][unit]") {
  checkpoint::TrainingStep value{.step = 7,
                                 .dp_world_size = 2,
                                 .mixed_precision = "bf16",
                                 .parallelism = checkpoint::Parallelism{2, 1, 1, 1},
                                 .progress = checkpoint::Progress{1, 24, 120, 6}};
  const Json json = checkpoint::to_json(value);
  CHECK(std::prev(json.end()).key() == "progress");
  const auto back = training_step_from_json(json, "x");
  CHECK(back.progress == value.progress);
  CHECK(back.parallelism == value.parallelism);
  CHECK(back.mixed_precision == value.mixed_precision);
  CHECK_FALSE(back.batch_size);
}

TEST_CASE("training_step: files of older versions fall back", "[training_step][unit]") {
  const auto old = training_step_from_json(Json::parse(R"({"step": 5, "num_processes": 4, "precision": "fp16"})"), "x");
  CHECK(old.step == 5);
  CHECK(old.dp_world_size == 4);
  CHECK(old.mixed_precision == "fp16");
  CHECK_FALSE(old.parallelism);
  const auto both = training_step_from_json(Json::parse(R"({"step": 5, "num_processes": 4, "dp_world_size": 2})"), "x");
  CHECK(both.dp_world_size == 2);
}

TEST_CASE("training_step: a missing step and wrong kinds are refused with key and value", "[training_step][unit]") {
  const fs::path malformed = LEROBOT_TEST_DATA "/malformed/training_step_wrong_type/training_step.json";
  CHECK_THROWS_WITH(
      training_step_from_json(formats::read_json(malformed, ErrorKind::kCheckpoint), malformed.string()),
      Catch::Contains("training_step_wrong_type") && Catch::Contains("\"step\"") && Catch::Contains("\"three\""));
  const auto refuses = [](const char* text, const char* part) {
    INFO(text);
    CHECK_THROWS_WITH(training_step_from_json(Json::parse(text), "f.json"),
                      Catch::Contains(part) && Catch::Contains("f.json"));
  };
  refuses("{}", "step");
  refuses("[]", "step");
  refuses(R"({"step": 1.0})", "float");
  refuses(R"({"step": true})", "bool");
  refuses(R"({"step": -1})", "-1");
  refuses(R"({"step": 18446744073709551615})", "18446744073709551615");
  refuses(R"({"step": 1, "batch_size": 0})", "batch_size");
  refuses(R"({"step": 1, "mixed_precision": "fp8"})", "fp8");
  refuses(R"({"step": 1, "parallelism": 4})", "parallelism");
  refuses(R"({"step": 1, "parallelism": {"dp_shard": "2"}})", "dp_shard");
  refuses(R"({"step": 1, "progress": {"epoch": 0}})", "samples_in_epoch");
}

TEST_CASE("training_step: differing settings are listed as old -> new, unknown ones are silent",
          "[training_step][unit]") {
  const checkpoint::TrainingStep saved{
      .step = 1, .grad_accum_steps = 4, .mixed_precision = "no", .parallelism = checkpoint::Parallelism{1, 4, 1, 1}};
  checkpoint::TrainingStep now{
      .step = 1, .grad_accum_steps = 2, .mixed_precision = "bf16", .parallelism = checkpoint::Parallelism{2, 2, 1, 1}};
  CHECK(checkpoint::differing_settings(saved, now) ==
        std::vector<std::string>{"grad_accum_steps: 4 -> 2", "dp_replicate: 1 -> 2", "dp_shard: 4 -> 2",
                                 "mixed_precision: no -> bf16"});
  CHECK(checkpoint::differing_settings(saved, saved).empty());
  CHECK(checkpoint::differing_settings({.step = 1}, now).empty());
}
