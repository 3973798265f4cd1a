// The training loop as its files and lines show it: counters, rates, accumulation, frequencies.
#include <catch2/catch.hpp>

#include "support/run_program.hpp"

using namespace lerobot::test;

namespace {

using Words = std::vector<std::string>;

Finished train_ok(int ranks, const Words& arguments) {
  Finished run = train(ranks, arguments);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  return run;
}

Words checkpoints(const std::filesystem::path& output_dir) {
  Words names;
  if (!std::filesystem::exists(output_dir / "checkpoints")) return names;
  for (const auto& entry : std::filesystem::directory_iterator(output_dir / "checkpoints"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("loop: samples and epochs count the whole job and go on after a resume (T1)", "[loop]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  train_ok(2, small_act(out) + Words{"--steps=10", "--log_freq=10", "--save_freq=10"});
  auto records = metrics(out);
  REQUIRE(records.size() == 1);
  CHECK(records[0]["step"] == 10);
  CHECK(records[0]["samples"] == 80);
  train_ok(2,
           {"--resume=true", "--config_path=" + (out / "checkpoints/last/pretrained_model/train_config.json").string(),
            "--steps=20"});
  records = metrics(out);
  REQUIRE(records.size() == 2);
  CHECK(records[1]["samples"] == 160);
  CHECK(records[1]["epochs"].get<double>() == Approx(160.0 / 482));
  const TemporaryFolder one;
  train_ok(0, small_act(one / "run") + Words{"--steps=10", "--log_freq=10", "--save_checkpoint=false"});
  CHECK(metrics(one / "run").at(0)["samples"] == 40);
}

TEST_CASE("loop: the learning rate does not depend on the number of ranks (T5)", "[loop]") {
  const TemporaryFolder folder;
  const Words schedule{"--steps=6",
                       "--log_freq=1",
                       "--save_checkpoint=false",
                       "--use_policy_training_preset=false",
                       "--optimizer.type=adamw",
                       "--optimizer.lr=1e-3",
                       "--scheduler.type=constant_with_warmup",
                       "--scheduler.num_warmup_steps=4"};
  for (const int ranks : {1, 4}) {
    const auto out = folder / std::to_string(ranks);
    train_ok(ranks, small_act(out) + schedule);
    std::vector<double> rates;
    for (const auto& record : metrics(out)) rates.push_back(record["lr"].get<double>());
    const std::vector<double> expected{0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3};
    REQUIRE(rates.size() == expected.size());
    for (std::size_t i = 0; i < rates.size(); ++i) CHECK(rates[i] == Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("loop: updates happen on every fourth micro-batch only, also over an epoch's end (T6)", "[loop]") {
  const TemporaryFolder folder;
  const auto out = folder / "run";
  train_ok(0, small_act(out) + Words{"--steps=12", "--log_freq=1", "--accelerator.gradient_accumulation.steps=4",
                                     "--dataset.episodes=[0]", "--batch_size=8", "--save_checkpoint=false"});
  const auto records = metrics(out);
  REQUIRE(records.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    INFO("step " << i + 1);
    CHECK((records[i]["grad_norm"].get<double>() > 0) == ((i + 1) % 4 == 0));
  }
}

TEST_CASE("loop: frequencies of zero and below leave the last checkpoint only (T8)", "[loop]") {
  for (const std::string freq : {"0", "-1"}) {
    const TemporaryFolder folder;
    const auto out = folder / "run";
    train_ok(0, small_act(out) + Words{"--steps=3", "--log_freq=0", "--save_freq=" + freq});
    CHECK(checkpoints(out) == Words{"000003", "last"});
  }
}

TEST_CASE("loop: the banner says what a run is made of", "[loop]") {
  const TemporaryFolder folder;
  const Finished run = train_ok(2, small_act(folder / "run") + Words{"--steps=4", "--log_freq=2", "--save_freq=2"});
  const Words lines{"Output dir: " + (folder / "run").string(),
                    "cfg.steps=4 (4)",
                    "dataset.num_frames=482 (482)",
                    "dataset.num_episodes=8",
                    "Effective batch size: 4 x 2 dp workers x 1 grad accum = 8 (topology: dp_replicate=2, dp_shard=1)",
                    "num_learnable_params=10938 (11K)",
                    "num_total_params=10938 (11K)",
                    "Start offline training on a fixed dataset, with effective batch size: 8",
                    "step:2 smpl:16 ep:0 epch:0.03",
                    "Checkpoint policy after step 2",
                    "Checkpoint policy after step 4",
                    "End of training"};
  std::size_t at = 0;
  for (const auto& line : lines) {
    INFO(line << "\n" << run.out);
    CHECK(count(run.out, line) == 1);
    const auto found = run.out.find(line);
    CHECK(found >= at);
    at = found;
  }
}

TEST_CASE("loop: held-out loss is the same for any number of ranks (D6)", "[loop]") {
  std::vector<double> losses;
  for (const int ranks : {1, 2, 4}) {
    const TemporaryFolder folder;
    // Rate 0 leaves the weights alone, so that all three evaluate the same policy.
    const Finished run = train_ok(
        ranks, small_act(folder / "run") + Words{"--steps=1", "--eval_steps=1", "--dataset.eval_split=0.25",
                                                 "--batch_size=7", "--optimizer.lr=0.0",
                                                 "--policy.optimizer_lr_backbone=0.0", "--save_checkpoint=false"});
    CHECK(count(run.out, "step 1: eval_loss=") == 1);
    losses.push_back(metrics(folder / "run", "eval_loss").at(0)["eval_loss"].get<double>());
  }
  CHECK(losses[1] == Approx(losses[0]).epsilon(1e-6));
  CHECK(losses[2] == Approx(losses[0]).epsilon(1e-6));
}
