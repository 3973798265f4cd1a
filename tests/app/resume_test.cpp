// Stopping and going on: bit for bit where the layout is the same.
#include <catch2/catch.hpp>

#include "support/run_program.hpp"

using namespace lerobot::test;

namespace {

using Words = std::vector<std::string>;

void train_ok(int ranks, const Words& arguments) {
  const Finished run = train(ranks, arguments);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
}

/// What a continued run must share with an unbroken one: weights, optimizer, random states, and nothing timed.
void check_same_checkpoint(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* name : {"pretrained_model/model.safetensors", "training_state/optimizer_state.safetensors",
                           "training_state/optimizer_param_groups.json", "training_state/rng_state.safetensors",
                           "training_state/rng_state_ranks.safetensors", "training_state/training_step.json"}) {
    INFO(name);
    REQUIRE(std::filesystem::exists(a / name));
    CHECK(slurp(a / name) == slurp(b / name));
  }
}

Words resume(const std::filesystem::path& run, const std::string& step, const std::filesystem::path& out) {
  return {"--resume=true", "--config_path=" + (run / "checkpoints" / step / "pretrained_model").string(),
          "--output_dir=" + out.string()};
}

}  // namespace

TEST_CASE("resume: six steps equal three and three to the bit, with dropout on", "[resume]") {
  for (const int ranks : {1, 2}) {
    for (const std::string accumulation : {"1", "2"}) {
      INFO(ranks << " ranks, accumulation " << accumulation);
      const TemporaryFolder folder;
      train_ok(ranks,
               small_act(folder / "whole") + Words{"--steps=6", "--save_freq=3", "--log_freq=1", "--policy.dropout=0.1",
                                                   "--accelerator.gradient_accumulation.steps=" + accumulation});
      train_ok(ranks, resume(folder / "whole", "000003", folder / "resumed"));
      check_same_checkpoint(folder / "whole/checkpoints/000006", folder / "resumed/checkpoints/000006");
      const auto whole = metrics(folder / "whole"), resumed = metrics(folder / "resumed");
      REQUIRE(whole.size() == 6);
      REQUIRE(resumed.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) CHECK(whole[i + 3]["loss"] == resumed[i]["loss"]);
    }
  }
}

TEST_CASE("resume: a checkpoint inside an accumulation window loses nothing (U8)", "[resume]") {
  const TemporaryFolder folder;
  train_ok(1, small_act(folder / "whole") + Words{"--steps=8", "--save_freq=6", "--log_freq=1", "--policy.dropout=0.1",
                                                  "--accelerator.gradient_accumulation.steps=4"});
  const Finished run = train(1, resume(folder / "whole", "000006", folder / "resumed"));
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(count(run.out, "replay") >= 1);
  check_same_checkpoint(folder / "whole/checkpoints/000008", folder / "resumed/checkpoints/000008");

  const Finished changed = train(
      1, resume(folder / "whole", "000006", folder / "changed") + Words{"--accelerator.gradient_accumulation.steps=2"});
  INFO(changed.out << changed.err);
  CHECK(changed.code == 0);
  CHECK(count(changed.err, "grad_accum_steps: 4 -> 2") == 1);
}

TEST_CASE("resume: the schedule goes on where it was (U7)", "[resume]") {
  const TemporaryFolder folder;
  train_ok(1, small_act(folder / "whole") +
                  Words{"--steps=12", "--save_freq=2", "--log_freq=1", "--use_policy_training_preset=false",
                        "--optimizer.type=adamw", "--optimizer.lr=1e-3",
                        "--scheduler.type=cosine_annealing_with_warmup", "--scheduler.num_warmup_steps=4"});
  const auto whole = metrics(folder / "whole");
  for (const std::string step : {"000002", "000010"}) {
    train_ok(1, resume(folder / "whole", step, folder / step));
    const auto resumed = metrics(folder / step);
    const std::size_t first = whole.size() - resumed.size();
    REQUIRE(first == static_cast<std::size_t>(std::stoi(step)));
    for (std::size_t i = 0; i < resumed.size(); ++i) CHECK(whole[first + i]["lr"] == resumed[i]["lr"]);
  }
}

TEST_CASE("resume: overridden values are said, old and new (U6)", "[resume]") {
  const TemporaryFolder folder;
  train_ok(1, small_act(folder / "run") + Words{"--steps=4", "--save_freq=4"});
  const Finished run =
      train(1, {"--resume=true",
                "--config_path=" + (folder / "run/checkpoints/last/pretrained_model/train_config.json").string(),
                "--steps=8", "--log_freq=1", "--optimizer.lr=1e-5"});
  INFO(run.out << run.err);
  CHECK(run.code == 0);
  CHECK(count(run.out, "steps: 4 -> 8") == 1);
  CHECK(run.err.find("optimizer.lr") != std::string::npos);  // the stored groups decide: a warning
  CHECK(metrics(folder / "run").back()["step"] == 8);
}

TEST_CASE("resume: another number of ranks goes on at the same sample (U4, design 6.2)", "[resume]") {
  const TemporaryFolder folder;
  train_ok(2, small_act(folder / "two") + Words{"--steps=3", "--save_freq=3", "--log_freq=1"});
  const Finished run = train(1, resume(folder / "two", "000003", folder / "one") +
                                    Words{"--steps=5", "--parallelism.dp_replicate=1", "--log_freq=1"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(run.err.find("dp_replicate: 2 -> 1") != std::string::npos);
  const auto records = metrics(folder / "one");
  REQUIRE(records.size() == 2);
  CHECK(records[0]["samples"] == 28);  // 3 steps of 8, then 4 by 4
  CHECK(records[1]["samples"] == 32);
  CHECK(run.out.find("Resuming data order at epoch 0, sample 24") != std::string::npos);
}

TEST_CASE("resume: auto starts fresh, then goes on from the newest complete checkpoint", "[resume]") {
  const TemporaryFolder folder;
  const Words words = small_act(folder / "run") + Words{"--resume=auto", "--save_freq=2", "--log_freq=1"};
  train_ok(1, words + Words{"--steps=2"});
  train_ok(1, words + Words{"--steps=4"});
  const auto records = metrics(folder / "run");
  REQUIRE(records.size() == 4);
  CHECK(records.back()["step"] == 4);
}

TEST_CASE("resume: a missing training_state is refused by name", "[resume]") {
  const TemporaryFolder folder;
  train_ok(1, small_act(folder / "run") + Words{"--steps=2", "--save_freq=2"});
  std::filesystem::remove_all(folder / "run/checkpoints/000002/training_state");
  const Finished run = train(1, resume(folder / "run", "000002", folder / "next") + Words{"--steps=4"});
  INFO(run.err);
  CHECK(run.code == 1);
  CHECK(run.err.find("training_state") != std::string::npos);
}
