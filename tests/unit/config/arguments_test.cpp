#include "support.hpp"

using namespace lerobot::config;
using namespace lerobot::config::test;

TEST_CASE("arguments: two forms, values with =, negative numbers, the last one counts", "[arguments]") {
  CHECK(parse({"--steps", "7"}).config.steps == 7);
  CHECK(parse({"--job_name=a=b"}).config.job_name == "a=b");
  CHECK(parse({"--parallelism.dp_shard", "-1"}).config.parallelism.dp_shard == 1);
  CHECK(parse({"--steps=1", "--steps=2"}).config.steps == 2);  // U047
  CHECK(parse({"--job_name", "x", "--job_name="}).config.job_name == "act");
  CHECK(parse({"--accelerator.fsdp={\"cpu_offload\": true}"}).config.accelerator.fsdp.cpu_offload);
  CHECK(parse({"--accelerator={gradient_accumulation: {steps: 2}}", "--accelerator.mixed_precision=bf16"})
            .config.accelerator.gradient_accumulation.steps == 2);
}

TEST_CASE("arguments: a form that is wrong leaves with 2", "[arguments]") {
  for (const char* word : {"--bogus=1", "--dataset.bogus=1", "word", "--eval_freq=1", "--checkpoint_path=x",
                           "--policy.bogus=1", "-x", "--", "--accelerator.grad_scaler.enabled=true"}) {  // U045, U009
    CAPTURE(word);
    check_refused(refusal({word}), 2, {"unrecognized arguments", word});
  }
  check_refused(refusal({"--step=5"}), 2, {"unrecognized arguments", "--step=5", "--steps"});  // U046
  check_refused(refusal({"--resume"}), 2, {"--resume", "expected one argument"});              // U036
  check_refused(refusal({"--steps", "--log_freq=1"}), 2, {"--steps", "expected one argument"});
  check_refused(refusal({"--optimizer.type=bogus"}), 2,
                {"invalid choice", "adam", "adamw", "sgd", "multi_adam"});  // U049
  check_refused(refusal_bare({"--policy.type=nope"}), 2, {"invalid choice", "nope", "act"});
  check_refused(refusal_bare({"--policy=nope"}), 2, {"invalid choice", "act"});
  check_refused(refusal({"--scheduler.type=linear"}), 2, {"invalid choice", "cosine_decay_with_warmup"});
  check_refused(refusal({"--optimizer.type=sgd", "--optimizer.betas=[0.9, 0.99]"}), 2,
                {"unrecognized arguments", "--optimizer.betas"});
  check_refused(refusal({"--optimizer.momentum=0.9"}), 2, {"unrecognized arguments", "--optimizer.momentum", "adamw"});
}

TEST_CASE("arguments: --help needs nothing else and beats wrong flags", "[arguments]") {
  CHECK_FALSE(parse_bare({"--help"}).help.empty());
  CHECK_FALSE(parse_bare({"-h", "--bogus=1"}).help.empty());
}

TEST_CASE("arguments: --policy=act is the older form of --policy.type=act", "[arguments]") {
  const Words words{"--dataset.repo_id=u/d",     "--policy=act",        "--policy.chunk_size=10",
                    "--policy.n_action_steps=5", "--policy.device=cpu", "--policy.push_to_hub=false"};
  CHECK(parse_bare(words).config.policy.settings.at("chunk_size") == 10);
  CHECK(parse_bare({"--dataset.repo_id=u/d", "--policy={type: act, device: cpu, push_to_hub: false}"})
            .config.policy.type() == "act");
}
