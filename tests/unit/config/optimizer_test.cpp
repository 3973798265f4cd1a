#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;
using namespace lerobot::config::test;

namespace {

TrainConfig from_file(const std::string& text, const Words& words) {
  const Scratch scratch;
  Words all = complete(words);
  all.push_back("--config_path=" + scratch.write("run.json", text));
  return parse_bare(all).config;
}

}  // namespace

TEST_CASE("optimizer: the preset of the policy, single settings on top", "[optimizer]") {
  const OptimizerConfig preset = *parse({}).config.optimizer;
  CHECK(preset.kind == OptimizerKind::kAdamW);
  CHECK(preset.lr == 1e-5);
  CHECK(preset.weight_decay == 1e-4);
  CHECK(preset.grad_clip_norm == 10.0);
  CHECK_FALSE(parse({}).config.scheduler);
  const TrainConfig faster = parse({"--optimizer.lr=2e-4"}).config;  // U066
  CHECK(faster.optimizer->lr == 2e-4);
  CHECK(faster.optimizer->weight_decay == 1e-4);
  CHECK(to_json(faster)["optimizer"]["lr"].dump() == "0.0002");
  CHECK(faster.policy.settings.at("optimizer_lr_backbone") == 1e-5);
  CHECK(parse({"--policy.optimizer_lr=3e-4"}).config.optimizer->lr == 3e-4);
  CHECK(parse({"--optimizer.type=adamw", "--optimizer.eps=1e-6"}).config.optimizer->lr == 1e-5);
  CHECK(parse({"--optimizer=null"}).config.optimizer == preset);
  const OptimizerConfig sgd = *parse({"--optimizer.type=sgd", "--optimizer.momentum=0.9"}).config.optimizer;
  CHECK(sgd.kind == OptimizerKind::kSgd);
  CHECK(sgd.lr == 1e-3);
  CHECK(sgd.momentum == 0.9);
  CHECK(
      to_json(parse({"--optimizer.type=sgd"}).config)["optimizer"].dump() ==
      R"({"type":"sgd","lr":0.001,"weight_decay":0.0,"grad_clip_norm":10.0,"momentum":0.0,"dampening":0.0,"nesterov":false})");
}

TEST_CASE("optimizer: without the preset both blocks are needed", "[optimizer]") {
  const Words off{"--use_policy_training_preset=false", "--optimizer.type=adamw"};
  check_refused(refusal(off), 1, {"Optimizer and Scheduler must be set"});  // U065
  Words both = off;
  both.push_back("--scheduler.type=constant_with_warmup");
  const TrainConfig config = parse(both).config;
  CHECK(config.optimizer == default_optimizer(OptimizerKind::kAdamW));
  CHECK(config.scheduler->num_warmup_steps == 1000);
  check_refused(refusal({"--use_policy_training_preset=false", "--scheduler.type=constant_with_warmup"}), 1,
                {"Optimizer and Scheduler must be set"});
  const TrainConfig untyped = parse({"--use_policy_training_preset=false", "--optimizer.lr=0.5",
                                     "--scheduler.type=diffuser", "--scheduler.num_warmup_steps=5"})
                                  .config;
  CHECK(untyped.optimizer->kind == OptimizerKind::kAdam);
  CHECK(untyped.optimizer->lr == 0.5);
}

TEST_CASE("optimizer: blocks of a file", "[optimizer]") {
  const std::string file =
      R"({"dataset": {"repo_id": "u/d"}, "optimizer": {"type": "adamw", "lr": 0.5, "weight_decay": 0.2}})";
  const OptimizerConfig sgd = *from_file(file, {"--optimizer.type=sgd"}).optimizer;  // U054
  CHECK(sgd.kind == OptimizerKind::kSgd);
  CHECK(sgd.lr == 0.5);
  CHECK(sgd.weight_decay == 0.2);
  CHECK(sgd.momentum == 0.0);
  CHECK(from_file(file, {}).optimizer->lr == 0.5);
  CHECK(from_file(file, {"--optimizer=null"}).optimizer->lr == 1e-5);
  CHECK_THROWS_WITH(from_file(R"({"dataset": {"repo_id": "u/d"}, "optimizer": {"type": "adamw", "eps": 1e-8}})",
                              {"--optimizer.type=sgd"}),
                    Catch::Contains("eps") && Catch::Contains("not valid"));
}

TEST_CASE("optimizer: wrong values", "[optimizer]") {
  check_refused(refusal({"--optimizer.type=adamw", "--optimizer.betas=[0.9]"}), 1,
                {"Expected 2 items, got 1"});  // U048
  check_refused(refusal({"--optimizer.lr=fast"}), 1, {"optimizer.lr", "into a float"});
  check_refused(refusal({"--optimizer.type=sgd", "--optimizer.nesterov=true"}), 1, {"nesterov", "momentum"});
  check_refused(refusal({"--optimizer.type=multi_adam", "--parallelism.dp_shard=2"}, world(2)), 1, {"Multi-optimizer"});
  check_refused(refusal({"--scheduler.num_warmup_steps=3"}), 1, {"scheduler", "type"});
  check_refused(refusal({"--scheduler.type=cosine_annealing_with_warmup"}), 1,
                {"Missing required field", "scheduler.num_warmup_steps"});
  check_refused(refusal({"--scheduler.type=diffuser", "--scheduler.name=piecewise_constant"}), 1,
                {"piecewise_constant", "polynomial"});
  check_refused(refusal({"--scheduler.type=diffuser"}), 1, {"num_warmup_steps"});
}

TEST_CASE("scheduler: every kind keeps its settings", "[optimizer]") {
  const Words decay{"--scheduler.type=cosine_decay_with_warmup", "--scheduler.num_warmup_steps=10",
                    "--scheduler.num_decay_steps=20", "--scheduler.peak_lr=1e-3", "--scheduler.decay_lr=1e-5"};
  CHECK(
      to_json(parse(decay).config)["scheduler"].dump() ==
      R"({"type":"cosine_decay_with_warmup","num_warmup_steps":10,"num_decay_steps":20,"peak_lr":0.001,"decay_lr":1e-05})");
  CHECK(to_json(parse({"--scheduler.type=vqbet", "--scheduler.num_warmup_steps=2",
                       "--scheduler.num_vqvae_training_steps=3"})
                    .config)["scheduler"]
            .dump() == R"({"type":"vqbet","num_warmup_steps":2,"num_vqvae_training_steps":3,"num_cycles":0.5})");
  CHECK(to_json(parse({"--scheduler.type=diffuser", "--scheduler.num_warmup_steps=2"}).config)["scheduler"].dump() ==
        R"({"type":"diffuser","name":"cosine","num_warmup_steps":2})");
}
