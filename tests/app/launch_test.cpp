// What lerobot-train does with wrong topologies, flags and directories, as a user meets it.
#include <catch2/catch.hpp>

#include "support/run_program.hpp"

using namespace lerobot::test;

namespace {

/// The job ended with `code`, said every fragment on stderr, its message once, and wrote nothing.
void check_refused(const Finished& run, int code, const std::vector<std::string>& fragments,
                   const std::filesystem::path& output_dir) {
  INFO("stdout: " << run.out << "\nstderr: " << run.err);
  CHECK(run.code == code);
  for (const auto& fragment : fragments) CHECK(run.err.find(fragment) != std::string::npos);
  CHECK(count(run.err, "error: ") == 1);
  CHECK(!std::filesystem::exists(output_dir));
}

}  // namespace

TEST_CASE("launch: nonsense degrees are refused with flag and value (L1)", "[launch]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  for (const std::string degree : {"dp_shard=-2", "dp_shard=0", "dp_replicate=0", "dp_replicate=-1"}) {
    const auto at = degree.find('=');
    check_refused(train(2, small_act(out) + std::vector<std::string>{"--parallelism." + degree}), 1,
                  {degree.substr(0, at), degree.substr(at + 1)}, out);
  }
}

TEST_CASE("launch: degrees must multiply to the number of ranks (L2)", "[launch]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  check_refused(
      train(4, small_act(out) + std::vector<std::string>{"--parallelism.dp_replicate=3", "--parallelism.dp_shard=-1"}),
      1, {"not divisible", "4", "3"}, out);
  check_refused(
      train(4, small_act(out) + std::vector<std::string>{"--parallelism.dp_replicate=2", "--parallelism.dp_shard=4"}),
      1, {"dp_replicate=2", "dp_shard=4", "WORLD_SIZE=4"}, out);
  check_refused(train(1, small_act(out) + std::vector<std::string>{"--parallelism.dp_shard=2"}), 1,
                {"dp_replicate=1", "dp_shard=2", "WORLD_SIZE=1"}, out);
}

TEST_CASE("launch: a wrong value is said once by eight ranks (L9)", "[launch]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  check_refused(train(8, small_act(out) + std::vector<std::string>{"--accelerator.mixed_precision=float16"}), 1,
                {"mixed_precision", "float16", "no", "bf16", "fp16"}, out);
}

TEST_CASE("launch: missing files end every rank (L8)", "[launch]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  check_refused(train(3, {"--resume=true", "--config_path=" + (folder / "none.json").string()}), 1, {"none.json"}, out);
  const auto root = folder / "dataset";
  std::filesystem::create_directories(root);
  auto arguments = small_act(out);
  arguments[1] = "--dataset.root=" + root.string();
  check_refused(train(3, arguments), 1, {"info.json"}, out);
}

TEST_CASE("launch: the form of the command line is checked first, and exits with 2", "[launch]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  check_refused(train(2, small_act(out) + std::vector<std::string>{"--step=5"}), 2,
                {"unrecognized arguments", "--step", "--steps"}, out);
  check_refused(train(0, small_act(out) + std::vector<std::string>{"word"}), 2, {"unrecognized arguments", "word"},
                out);
  check_refused(train(0, small_act(out) + std::vector<std::string>{"--resume"}), 2, {"resume", "expected one argument"},
                out);
}

TEST_CASE("launch: help needs no dataset and comes with or without mpirun", "[launch]") {
  for (const int ranks : {0, 2}) {
    const Finished run = train(ranks, {"--help", "--policy.type=act"});
    CHECK(run.code == 0);
    CHECK(count(run.out, "--policy.dim_model") >= 1);
    CHECK(run.err.empty());
  }
}

TEST_CASE("launch: fresh directories never exist already, an existing one is left alone (L11)", "[launch]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  const std::vector<std::string> quick{"--steps=1", "--save_checkpoint=false"};
  for (int i = 0; i < 5; ++i) {
    const Finished run = train(4, small_act(folder / ("fresh" + std::to_string(i))) + quick);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
  }
  std::filesystem::create_directories(out);
  std::ofstream(out / "kept") << "kept";
  const Finished run = train(4, small_act(out) + quick);
  CHECK(run.code == 1);
  CHECK(count(run.err, "already exists") == 1);
  CHECK(contents(out) == std::vector<std::pair<std::string, std::string>>{{"kept", "kept"}});
}

TEST_CASE("launch: accelerate's environment stops a run unless it is acknowledged", "[launch]") {
  const TemporaryFolder folder;
  check_refused(
      train(2, small_act(folder / "a"), 90, {"ACCELERATE_USE_FSDP=true", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS="}), 1,
      {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS, ACCELERATE_USE_FSDP", "LEROBOT_ALLOW_ACCELERATE_ENV"}, folder / "a");
  const Finished run =
      train(0, small_act(folder / "b") + std::vector<std::string>{"--steps=1", "--save_checkpoint=false"}, 90,
            {"ACCELERATE_USE_FSDP=true", "LEROBOT_ALLOW_ACCELERATE_ENV=1"});
  INFO(run.err);
  CHECK(run.code == 0);
}
