#include "lerobot/checkpoint/layout.hpp"

#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"
#include "support.hpp"

using namespace lerobot;
using namespace lerobot::test;

TEST_CASE("layout: step folders are as wide as the run needs, and at least six digits", "[layout][unit]") {
  CHECK(checkpoint::step_directory_name(5000, 100000) == "005000");
  CHECK(checkpoint::step_directory_name(5000, 10000000) == "00005000");
  CHECK(checkpoint::step_directory_name(12345678, 10) == "12345678");
  CHECK(checkpoint::step_of_directory_name("005000") == 5000);
  for (const char* name : {"", "last", "5000a", "-5", ".incomplete-000002", "99999999999999999999"})
    CHECK_FALSE(checkpoint::step_of_directory_name(name));
}

TEST_CASE("layout: a resume takes the file, the folder, the step folder, and last anywhere", "[layout][unit]") {
  const fs::path run = kGolden / "single/run/checkpoints";
  const fs::path step = fs::canonical(run / "last");
  for (const fs::path& path : {run / "last/pretrained_model/train_config.json", run / "last/pretrained_model",
                               run / "last", step / "pretrained_model/"}) {
    INFO(path);
    const auto paths = checkpoint::resolve_resume_path(path);
    CHECK(paths.checkpoint == step);
    CHECK(paths.pretrained_model == step / "pretrained_model");
    CHECK(paths.train_config == step / "pretrained_model/train_config.json");
  }
  CHECK_THROWS_WITH(checkpoint::resolve_resume_path("user/policy"),
                    Catch::Contains("user/policy") && Catch::Contains("no such file or directory") &&
                        Catch::Contains("hub download is not available"));
  CHECK_THROWS_WITH(checkpoint::resolve_resume_path(run), Catch::Contains("train_config.json"));
}

TEST_CASE("layout: the newest checkpoint is the complete one with the highest step", "[layout][unit]") {
  const TemporaryFolder folder;
  CHECK_FALSE(checkpoint::newest_checkpoint(folder.path / "nowhere"));
  CHECK_FALSE(checkpoint::newest_checkpoint(folder.path));
  for (const char* name : {"000009", "000010", "100000", ".incomplete-200000", "notes"})
    fs::create_directories(folder.path / name / "training_state");
  for (const char* name : {"000009", "000010", ".incomplete-200000", "notes"})
    spill(folder.path / name / "training_state/training_step.json", "{}");
  CHECK(checkpoint::newest_checkpoint(folder.path) == folder.path / "000010");
}
