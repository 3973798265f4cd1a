#include "lerobot/formats/json.hpp"
#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;
using namespace lerobot::config::test;

namespace {

const fs::path kCheckpoint = kData / "checkpoints/single/run/checkpoints/000003";

/// A run with checkpoints of the given names, and `last` pointing at the last of them.
void write_run(const Scratch& scratch, const std::vector<std::string>& names, const std::string& output_dir) {
  Json json = formats::read_json(kCheckpoint / "pretrained_model/train_config.json", ErrorKind::kConfig);
  json["output_dir"] = output_dir;
  for (const std::string& name : names) {
    scratch.write("run/checkpoints/" + name + "/pretrained_model/train_config.json",
                  formats::dump_python(json, 4, true));
    fs::create_directories(scratch / ("run/checkpoints/" + name + "/training_state"));
  }
  if (!names.empty()) fs::create_directory_symlink(names.back(), scratch / "run/checkpoints/last");
}

}  // namespace

TEST_CASE("resume: a file and its folders mean the same checkpoint (U068)", "[resume]") {
  for (const fs::path& path :
       {kCheckpoint / "pretrained_model/train_config.json", kCheckpoint / "pretrained_model", kCheckpoint}) {
    CAPTURE(path);
    const TrainConfig config = parse_bare({"--resume=true", "--config_path=" + path.string()}).config;
    CHECK(config.checkpoint_path == kCheckpoint.string());
    CHECK(config.policy.pretrained_path() == (kCheckpoint / "pretrained_model").string());
    CHECK(config.output_dir == "checkpoints/single/run");
    CHECK(config.resume == Resume::kTrue);
    CHECK(to_json(config)["resume"] == true);
    CHECK(config.optimizer->lr == 1e-3);
  }
}

TEST_CASE("resume: `last` is followed to the checkpoint", "[resume]") {
  const Scratch scratch;
  write_run(scratch, {"000002", "000004"}, scratch / "run");
  const TrainConfig config =
      parse_bare({"--resume=true", "--config_path=" + (scratch / "run/checkpoints/last")}).config;
  CHECK(config.checkpoint_path == scratch / "run/checkpoints/000004");
  CHECK(config.policy.pretrained_path() == scratch / "run/checkpoints/000004/pretrained_model");
}

TEST_CASE("resume: a path is needed, and must be there", "[resume]") {
  check_refused(refusal({"--resume=true"}), 1, {"config_path"});  // U067
  check_refused(refusal_bare({"--resume=true", "--config_path=/does/not/exist"}), 1, {"/does/not/exist"});
  check_refused(refusal_bare({"--resume=true", "--config_path=" + kCheckpoint.string(), "--policy.path=x"}), 1,
                {"--resume", "--policy.path"});
}

TEST_CASE("resume: flags override the checkpoint and are listed (U6)", "[resume]") {
  const ParsedTrain parsed =
      parse_bare({"--resume=true", "--config_path=" + kCheckpoint.string(), "--steps=8", "--log_freq=1",
                  "--optimizer.lr=1e-5", "--output_dir=elsewhere", "--timeout_s=5"});
  CHECK(parsed.config.steps == 8);
  std::string listed;
  for (const Override& o : parsed.overrides) listed += o.name + ": " + o.old_value + " -> " + o.new_value + "\n";
  CHECK(listed ==
        "output_dir: \"checkpoints/single/run\" -> \"elsewhere\"\nsteps: 6 -> 8\noptimizer.lr: 0.001 -> "
        "1e-05\ntimeout_s: 600.0 -> 5.0\n");
  REQUIRE(parsed.warnings.size() == 1);
  CHECK_THAT(parsed.warnings[0], Catch::Contains("optimizer.lr") && Catch::Contains("no effect"));
}

TEST_CASE("resume: the preset is not applied again", "[resume]") {
  const TrainConfig config =
      parse_bare({"--resume=true", "--config_path=" + kCheckpoint.string(), "--policy.optimizer_lr=0.5"}).config;
  CHECK(config.optimizer->lr == 1e-3);
}

TEST_CASE("resume: layouts change freely at this point", "[resume]") {
  const fs::path hsdp = kData / "checkpoints/hsdp2x2_dcp/run/checkpoints/000003";
  const ParsedTrain parsed = parse_bare(
      {"--resume=true", "--config_path=" + hsdp.string(), "--parallelism.dp_replicate=1", "--parallelism.dp_shard=2"},
      world(2));
  CHECK(parsed.config.parallelism.dp_world_size() == 2);
  REQUIRE(parsed.overrides.size() == 1);
  CHECK(parsed.overrides[0].name == "parallelism.dp_replicate");
  check_refused(refusal_bare({"--resume=true", "--config_path=" + hsdp.string()}, world(2)), 1, {"WORLD_SIZE=2"});
}

TEST_CASE("resume: settings that are ours alone come from the checkpoint too", "[resume]") {
  const Scratch scratch;
  write_run(scratch, {"000002"}, scratch / "run");
  scratch.write("run/checkpoints/000002/training_state/run_settings.json",
                R"({"async_save": false, "timeout_s": 33.0, "keep_last": 4})");
  const std::string path = "--config_path=" + (scratch / "run/checkpoints/000002");
  CHECK(parse_bare({"--resume=true", path}).config.run.timeout_s == 33.0);
  CHECK(parse_bare({"--resume=true", path, "--keep_last=1"}).config.run.keep_last == 1);
  scratch.write("run/checkpoints/000002/training_state/run_settings.json", R"({"steps": 1})");
  check_refused(refusal_bare({"--resume=true", path}), 1, {"steps", "not valid"});
}

TEST_CASE("resume=auto: the newest complete checkpoint, else a new run", "[resume]") {
  const Scratch scratch;
  const std::string out = "--output_dir=" + (scratch / "run");
  const ParsedTrain fresh = parse({"--resume=auto", out});
  CHECK(fresh.config.resume == Resume::kFalse);
  CHECK(fresh.config.output_dir == scratch / "run");

  write_run(scratch, {"000002", "000010", "1000000"}, scratch / "run");
  fs::remove_all(scratch / "run/checkpoints/1000000/training_state");
  fs::create_directories(scratch / "run/checkpoints/000011.tmp");
  const ParsedTrain resumed = parse_bare(
      {"--resume=auto", out, "--dataset.repo_id=u/d", "--steps=9", "--policy.path=/used/by/the/first/start"});
  CHECK(resumed.config.resume == Resume::kTrue);
  CHECK(resumed.config.checkpoint_path == scratch / "run/checkpoints/000010");
  CHECK(resumed.config.steps == 9);

  fs::remove_all(scratch / "run/checkpoints");
  CHECK(parse({"--resume=auto", out}).config.resume == Resume::kFalse);
  CHECK_THAT(parse({"--resume=auto"}).warnings.at(0), Catch::Contains("output_dir"));
}

TEST_CASE("resume: a finished run's file begins a fresh run where resume is false", "[resume]") {
  const TrainConfig config = parse_bare({"--config_path=" + kCheckpoint.string()}).config;
  CHECK(config.resume == Resume::kFalse);
  CHECK_FALSE(config.checkpoint_path);
  CHECK_FALSE(config.policy.pretrained_path());
}
