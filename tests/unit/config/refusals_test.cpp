#include <map>
#include <sstream>

#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;
using namespace lerobot::config::test;

namespace {

struct Recorded {
  Words words;
  std::int64_t ranks = 1;
  int exit = 0;
};

/// A command of LeRobot (Python) as it was run, with its exit code.
Recorded recorded(const std::string& name) {
  const fs::path folder = kData / "checkpoints" / name;
  Recorded result;
  std::istringstream text(slurp(folder / "command.txt"));
  for (std::string word; text >> word;) {
    if (word.starts_with("--nproc-per-node="))
      result.ranks = std::stoll(word.substr(17));
    else if (word.starts_with("--") && word != "--")
      result.words.push_back(word);
  }
  result.exit = std::stoi(slurp(folder / "exit_code.txt"));
  return result;
}

}  // namespace

TEST_CASE("refusals: what LeRobot refuses is refused here, with its exit code", "[refusals]") {
  const std::map<std::string, Words> fragments{
      {"refuse_cfg_parallel", {"cfg_parallel", "inference-only"}},
      {"refuse_cfg_parallel_3", {"cfg_parallel", "3"}},
      {"refuse_checkpoint_format", {"checkpoint_format", "zip"}},
      {"refuse_compile", {"accelerator.compile"}},
      {"refuse_dp_replicate_0", {"dp_replicate", "0"}},
      {"refuse_dp_shard_0", {"dp_shard", "0"}},
      {"refuse_ema_sharded", {"ema", "sharded"}},
      {"refuse_env_eval_sharded", {"environment evaluation"}},
      {"refuse_ga_0", {"gradient_accumulation.steps"}},
      {"refuse_min_num_params_0", {"min_num_params"}},
      {"refuse_minus1_indivisible", {"not divisible"}},
      {"refuse_mixed_precision_fp8", {"mixed_precision", "fp8"}},
      {"refuse_resume_without_config_path", {"config_path"}},
      {"refuse_ring", {"Context parallelism is not implemented"}},
      {"refuse_shard_minus1_world1_dcp", {"resolved to a non-sharded"}},
      {"refuse_single_dcp", {"checkpoint_format", "sharded"}},
      {"refuse_ulysses", {"Context parallelism is not implemented"}},
      {"refuse_unknown_flag", {"unrecognized arguments", "--parallelism.no_such_degree=2"}},
      {"refuse_world_mismatch", {"dp_shard=4", "WORLD_SIZE=2"}},
      {"refuse_wrap_and_minparams", {"mutually exclusive"}},
  };
  for (const auto& [name, expected] : fragments) {
    CAPTURE(name);
    const Recorded command = recorded(name);
    REQUIRE(command.exit != 0);
    check_refused(refusal_bare(command.words, world(command.ranks)), command.exit, expected);
  }
}

TEST_CASE("refusals: the environment guard", "[refusals]") {
  Environment environment = world();
  environment.variables["ACCELERATE_USE_FSDP"] = "true";
  check_refused(refusal_bare(recorded("refuse_env_guard").words, environment), 1,
                {"ACCELERATE_USE_FSDP", "LEROBOT_ALLOW_ACCELERATE_ENV"});
}

TEST_CASE("refusals: an output directory that exists", "[refusals]") {
  const Scratch scratch;
  Words words = recorded("refuse_output_dir_exists").words;
  words.push_back("--output_dir=" + (scratch / ""));
  check_refused(refusal_bare(words), 1, {"already exists", scratch / ""});
}

TEST_CASE("refusals: commands that only older LeRobot refused are accepted", "[refusals]") {
  const Recorded checkpointing = recorded("refuse_activation_checkpointing");
  CHECK(refusal_bare(checkpointing.words).exit == 0);
  Recorded fp16 = recorded("refuse_fsdp2_fp16");
  check_refused(refusal_bare(fp16.words, world(2)), 1, {"fp16", "cpu"});
  Environment gpus = world(2);
  gpus.devices.num_cuda = 2;
  fp16.words.push_back("--policy.device=cuda");
  CHECK(refusal_bare(fp16.words, gpus).exit == 0);
  Words peft = recorded("refuse_fsdp2_peft").words;
  for (std::string& word : peft)
    if (word.starts_with("--policy.path=")) word = "--policy.path=" + (kData / word.substr(14)).string();
  CHECK(refusal_bare(peft, world(2)).message == "(accepted)");
  for (const char* name : {"refuse_resume_sharded_as_single", "refuse_resume_single_as_sharded"}) {
    Recorded resume = recorded(name);
    for (std::string& word : resume.words)
      if (word.starts_with("--config_path=")) word = "--config_path=" + (kData / word.substr(14)).string();
    CAPTURE(name);
    if (fs::exists(resume.words[0].substr(14)))
      CHECK(refusal_bare(resume.words, world(resume.ranks)).message == "(accepted)");
  }
}

TEST_CASE("refuse_unbuilt: what a build does not have is refused by name", "[refusals]") {
  struct Row {
    Words words;
    bool BuiltFeatures::*feature;
    std::string name;
  };
  const Words pretrained{"--policy.pretrained_path=base", "--peft.r=2"};
  for (const Row& row :
       {Row{{"--parallelism.dp_shard=2"}, &BuiltFeatures::sharding, "dp_shard"},
        {{"--accelerator.mixed_precision=bf16"}, &BuiltFeatures::bf16, "mixed_precision"},
        {{"--accelerator.mixed_precision=fp16", "--policy.device=cuda"}, &BuiltFeatures::fp16, "mixed_precision"},
        {{"--accelerator.fsdp.cpu_offload=true"}, &BuiltFeatures::cpu_offload, "cpu_offload"},
        {{"--accelerator.activation_checkpointing.mode=full"},
         &BuiltFeatures::activation_checkpointing,
         "activation_checkpointing"},  // U016
        {pretrained, &BuiltFeatures::peft, "peft"},
        {{"--policy.pretrained_path=base", "--policy.use_peft=true"}, &BuiltFeatures::peft, "use_peft"},
        {{"--ema.enable=true"}, &BuiltFeatures::ema, "ema.enable"},
        {{"--async_save=true"}, &BuiltFeatures::async_save, "async_save"},
        {{"--plan=2"}, &BuiltFeatures::plan, "plan"},
        {{"--wandb.enable=true"}, &BuiltFeatures::wandb, "wandb.enable"},
        {{"--trackio.enable=true"}, &BuiltFeatures::trackio, "trackio.enable"},
        {{"--dataset.streaming=true"}, &BuiltFeatures::streaming, "dataset.streaming"},
        {{"--eval.recording=true"}, &BuiltFeatures::eval_recording, "eval.recording"},
        {{"--save_checkpoint_to_hub=true", "--policy.repo_id=u/p"},
         &BuiltFeatures::save_checkpoint_to_hub,
         "save_checkpoint_to_hub"}}) {
    CAPTURE(row.name);
    Environment environment = world(2);
    environment.devices.num_cuda = 2;
    CHECK(refusal(row.words, environment).message == "(accepted)");
    environment.built.*row.feature = false;
    check_refused(refusal(row.words, environment), 1, {row.name, "not in this version"});
  }
}
