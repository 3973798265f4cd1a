#include <ctime>

#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;
using namespace lerobot::config::test;

TEST_CASE("settings: accelerator", "[settings]") {
  check_refused(refusal({"--accelerator.fsdp.wrap_modules=[\"Block\"]", "--accelerator.fsdp.min_num_params=1000"}), 1,
                {"mutually exclusive"});                                                                         // U001
  check_refused(refusal({"--accelerator.fsdp.min_num_params=0"}), 1, {"min_num_params"});                        // U002
  check_refused(refusal({"--accelerator.mixed_precision=tf32"}), 1, {"mixed_precision", "tf32"});                // U003
  check_refused(refusal({"--accelerator.mixed_precision=float16"}), 1, {"float16", "no, fp16, bf16"});           // L9
  CHECK(to_json(parse({"--accelerator.mixed_precision=no"}).config)["accelerator"]["mixed_precision"] == "no");  // U004
  check_refused(refusal({"--accelerator.gradient_accumulation.steps=0"}), 1, {"gradient_accumulation.steps"});   // U005
  check_refused(refusal({"--accelerator.grad_scaler.init_scale=0"}), 1, {"grad_scaler.init_scale"});             // U006
  check_refused(refusal({"--accelerator.grad_scaler.growth_factor=1.0"}), 1, {"grad_scaler.growth_factor"});     // U007
  for (const char* value : {"1.0", "0.0", "nan"})
    check_refused(refusal({std::string("--accelerator.grad_scaler.backoff_factor=") + value}), 1,
                  {"grad_scaler.backoff_factor"});  // U008
  check_refused(refusal({"--accelerator.grad_scaler.growth_interval=0"}), 1, {"grad_scaler.growth_interval"});
  check_refused(refusal({"--accelerator.mixed_precision=fp16"}), 1, {"fp16", "cpu"});  // U012
  check_refused(refusal({"--accelerator.mixed_precision=fp16", "--policy.device=null"}), 1, {"fp16", "cpu"});
  CHECK(parse({"--accelerator.mixed_precision=bf16"}).config.accelerator.mixed_precision ==
        MixedPrecision::kBf16);  // U013
  check_refused(
      refusal({"--accelerator.mixed_precision=bf16", "--accelerator.fsdp.mixed_precision_policy.param_dtype=float16"}),
      1, {"float16", "fp16", "param_dtype"});  // U014
  check_refused(refusal({"--accelerator.fsdp.mixed_precision_policy.reduce_dtype=half"}), 1, {"reduce_dtype", "half"});
  check_refused(refusal({"--accelerator.compile.enabled=true"}), 1, {"compile"});  // U015
  check_refused(refusal({"--accelerator.fsdp.ignored_modules=(", "--steps=3"}), 1, {"ignored_modules"});
  CHECK(parse({"--accelerator.fsdp.ignored_modules=model\\.action_head"}).config.accelerator.fsdp.ignored_modules ==
        "model\\.action_head");
  CHECK(parse({"--accelerator.fsdp.mixed_precision_policy.cast_forward_inputs=false"})
            .config.accelerator.fsdp.mixed_precision_policy.cast_forward_inputs == false);
}

TEST_CASE("settings: grad_scaler defaults (U009)", "[settings]") {
  const GradScalerConfig scaler = parse({}).config.accelerator.grad_scaler;
  CHECK(scaler == GradScalerConfig{65536.0, 2.0, 0.5, 2000});
}

TEST_CASE("settings: topology against the world", "[settings]") {
  const auto resolved = [](const Words& words, std::int64_t ranks) {
    return parse(words, world(ranks)).config.parallelism;
  };
  CHECK(resolved({}, 1).dp_world_size() == 1);                                                      // U017
  CHECK(resolved({}, 8).dp_replicate == 8);                                                         // U018
  CHECK(resolved({"--parallelism.dp_shard=-1"}, 8).dp_shard == 8);                                  // U019
  CHECK(resolved({"--parallelism.dp_replicate=2", "--parallelism.dp_shard=-1"}, 8).dp_shard == 4);  // U020
  CHECK(resolved({"--parallelism.dp_replicate=2", "--parallelism.dp_shard=4"}, 8).sharded());       // U021
  const auto refused = [](const Words& words, std::int64_t ranks) { return refusal(words, world(ranks)); };
  check_refused(refused({"--parallelism.dp_replicate=2", "--parallelism.dp_shard=2"}, 8), 1,
                {"dp_replicate=2", "dp_shard=2", "WORLD_SIZE=8"});                   // U022
  check_refused(refused({"--parallelism.dp_replicate=4"}, 8), 1, {"WORLD_SIZE=8"});  // U023
  check_refused(refused({"--parallelism.dp_replicate=3", "--parallelism.dp_shard=-1"}, 8), 1,
                {"not divisible"});                                                       // U024
  check_refused(refused({"--parallelism.dp_replicate=0"}, 8), 1, {"dp_replicate", "0"});  // U025, L1
  check_refused(refused({"--parallelism.dp_shard=0"}, 8), 1, {"dp_shard", "0"});
  check_refused(refused({"--parallelism.dp_shard=-2"}, 8), 1, {"dp_shard", "-2", "-1"});
  check_refused(refused({"--parallelism.cfg_parallel=3"}, 8), 1, {"cfg_parallel"});  // U026
  check_refused(refused({"--parallelism.cfg_parallel=2"}, 8), 1, {"inference-only"});
  check_refused(refused({"--parallelism.context_parallel.ring_degree=2"}, 8), 1,
                {"Context parallelism is not implemented"});
  check_refused(refused({"--parallelism.context_parallel.ulysses_degree=0"}, 8), 1, {"ulysses_degree"});
  CHECK(parse({"--plan=64", "--parallelism.dp_shard=-1"}).config.parallelism.dp_shard == 64);
}

TEST_CASE("settings: checkpoint_format needs a sharded run", "[settings]") {
  check_refused(refusal({"--checkpoint_format=dcp"}, world(2)), 1,
                {"checkpoint_format", "sharded", "--parallelism.dp_shard"});  // U030, K6
  check_refused(refusal({"--checkpoint_format=zip"}, world(2)), 1,
                {"checkpoint_format", "zip", "safetensors, dcp, safetensors_dcp"});
  check_refused(refusal({"--checkpoint_format=dcp", "--parallelism.dp_shard=-1"}), 1, {"resolved to a non-sharded"});
  CHECK(parse({"--checkpoint_format=dcp", "--parallelism.dp_shard=2"}, world(2)).config.checkpoint_format ==
        CheckpointFormat::kDcp);  // U031
  CHECK(parse({"--checkpoint_format=SAFETENSORS_AND_DCP", "--parallelism.dp_shard=2"}, world(2))
            .config.checkpoint_format == CheckpointFormat::kSafetensorsDcp);
}

TEST_CASE("settings: fp16 and adapters go with sharding (U032)", "[settings]") {
  Environment gpus = world(2);
  gpus.devices.num_cuda = 2;
  CHECK(parse({"--policy.device=cuda", "--parallelism.dp_shard=2", "--accelerator.mixed_precision=fp16"}, gpus)
            .config.policy.device() == "cuda");
  CHECK(parse({"--policy.pretrained_path=base", "--parallelism.dp_shard=2", "--peft.r=4",
               "--peft.target_modules=all-linear"},
              gpus)
            .config.peft->r == 4);
}

TEST_CASE("settings: values", "[settings]") {
  for (const char* bad : {"1e3", "100.0", "abc"})
    check_refused(refusal({std::string("--steps=") + bad}), 1, {"`steps`", "into an int"});  // U033
  CHECK(parse({"--steps=1_000"}).config.steps == 1000);                                      // U034
  check_refused(refusal({"--resume=1"}), 1, {"resume", "true, false, auto"});                // U035
  check_refused(refusal({"--save_checkpoint=null"}), 1, {"save_checkpoint", "into a bool"});
  CHECK(parse({"--dataset.episodes=[0,1,2]"}).config.dataset.episodes == std::vector<std::int64_t>{0, 1, 2});  // U037
  CHECK(parse({"--dataset.episodes", "[0, 1]"}).config.dataset.episodes->size() == 2);
  CHECK(parse({"--dataset.episodes=[]"}).config.dataset.episodes->empty());
  CHECK_FALSE(parse({"--dataset.episodes=null"}).config.dataset.episodes);
  check_refused(refusal({"--dataset.episodes=3"}), 1, {"dataset.episodes", "list"});   // U038
  check_refused(refusal({"--dataset.episodes=[0,-1,2]"}), 1, {"non-negative"});        // U039
  check_refused(refusal({"--dataset.episodes=[0,1,1,2]"}), 1, {"duplicates", "[1]"});  // U040
  const ParsedTrain excluded = parse({"--dataset.exclude_episodes=[-2,1,-1,3]"});      // U041
  CHECK(excluded.config.dataset.exclude_episodes == std::vector<std::int64_t>{1, 3});
  REQUIRE(excluded.warnings.size() == 1);
  CHECK_THAT(excluded.warnings[0], Catch::Contains("exclude_episodes") && Catch::Contains("[-2, -1]"));
  check_refused(refusal({"--dataset.repo_type=model"}), 1, {"repo_type"});        // U042
  check_refused(refusal({"--dataset.repo_type=bucket"}), 1, {"streaming-only"});  // U043
  check_refused(refusal({"--dataset.eval_split=1.0"}), 1, {"eval_split"});        // U044
  check_refused(refusal({"--dataset.depth_output_unit=cm"}), 1, {"depth_output_unit"});
  check_refused(refusal({"--dataset.repo_id=[a, b]"}), 1, {"dataset.repo_id", "not implemented"});
  check_refused(refusal({"--dataloader_multiprocessing_context=thread"}), 1, {"dataloader_multiprocessing_context"});
  check_refused(refusal({"--eval_steps=5"}), 1, {"eval_split"});
  check_refused(refusal({"--rename_map={a: b}"}), 1, {"rename_map", "pretrained"});
  for (const char* word : {"--batch_size=0", "--steps=0", "--num_workers=-1", "--prefetch_factor=0",
                           "--max_eval_samples=-1", "--timeout_s=0", "--keep_last=-1", "--plan=0"})
    check_refused(refusal({word}), 1, {std::string(word).substr(2, std::string(word).find('=') - 2)});
  CHECK(parse({"--save_freq=0", "--log_freq=0"}).config.save_freq == 0);  // T8
  CHECK(parse({"--save_freq=-1"}).config.save_freq == -1);
}

TEST_CASE("settings: blocks", "[settings]") {
  check_refused(refusal({"--ema.min_decay=0.5", "--ema.max_decay=0.4"}), 1, {"min_decay"});
  check_refused(refusal({"--ema.decay=0.9", "--ema.max_decay=0.5"}), 1, {"mutually exclusive"});
  check_refused(refusal({"--ema.decay=1.5"}), 1, {"ema.decay"});
  check_refused(refusal({"--ema.enable=true", "--parallelism.dp_shard=2"}, world(2)), 1, {"ema", "sharded"});
  check_refused(refusal({"--ema.enable=true", "--peft.r=2", "--policy.pretrained_path=base"}), 1, {"ema", "PEFT"});
  check_refused(refusal({"--peft.r=0"}), 1, {"r", "0"});
  check_refused(refusal({"--peft.method_type=IA3"}), 1, {"IA3"});
  check_refused(refusal({"--peft.r=2"}), 1, {"pretrained_path"});
  check_refused(refusal({"--eval.recording_repo_id=a/b"}), 1, {"recording"});
  check_refused(refusal({"--job.target=a10g"}), 1, {"job.target"});
  check_refused(refusal({"--wandb.mode=cloud"}), 1, {"wandb.mode", "online, offline, disabled"});
  check_refused(refusal({"--env.type=pusht"}), 1, {"env", "not supported"});
  check_refused(refusal({"--env.type=pusht", "--parallelism.dp_shard=2"}, world(2)), 1,
                {"env", "not supported", "environment evaluation"});
  check_refused(refusal({"--reward_model.type=sarm", "--parallelism.dp_shard=2"}, world(2)), 1,
                {"reward_model", "not supported", "Reward-model"});
  check_refused(refusal({"--sample_weighting.type=rabc"}), 1, {"sample_weighting", "not supported"});
  check_refused(refusal({"--save_checkpoint_to_hub=true"}), 1, {"save_checkpoint_to_hub"});
  CHECK(parse({"--peft.target_modules=[q, v]", "--policy.pretrained_path=base"}).config.peft->target_modules->index() ==
        0);
  CHECK_FALSE(parse({"--peft=null"}).config.peft);
}

TEST_CASE("settings: policy", "[settings]") {
  check_refused(refusal_bare({"--dataset.repo_id=u/d"}), 1, {"Neither policy nor reward_model is configured"});
  check_refused(refusal_bare({"--dataset.repo_id=u/d", "--policy.chunk_size=10"}), 1, {"type"});  // U050
  check_refused(refusal({"--policy.n_action_steps=200"}), 1, {"chunk size", "200", "100"});       // U061
  check_refused(refusal({"--policy.n_obs_steps=2"}), 1, {"Multiple observation steps"});
  check_refused(refusal({"--policy.temporal_ensemble_coeff=0.01"}), 1, {"n_action_steps"});
  check_refused(refusal({"--policy.vision_backbone=vit"}), 1, {"vision_backbone"});
  check_refused(refusal({"--policy.replace_final_stride_with_dilation=true"}), 1,
                {"replace_final_stride_with_dilation", "resnet50"});
  check_refused(refusal({"--policy.input_features={observation.state: {type: STATE, shape: [2]}}"}), 1,
                {"at least one image or the environment state"});
  check_refused(refusal({"--policy.input_features={x: {type: PICTURE, shape: [2]}}"}), 1,
                {"input_features", "PICTURE"});
  check_refused(refusal({"--policy.use_peft=true"}), 1, {"use_peft"});
  check_refused(refusal_bare({"--dataset.repo_id=u/d", "--policy.type=act", "--policy.device=cpu"}), 1,
                {"'repo_id' argument missing"});  // U064
  CHECK(parse({"--policy.pretrained_backbone_weights=null"})
            .config.policy.settings.at("pretrained_backbone_weights")
            .is_null());
}

TEST_CASE("settings: device", "[settings]") {
  check_refused(refusal({"--policy.device=tpu"}), 1, {"Unknown device", "tpu"});
  check_refused(refusal({"--policy.device=cuda:x"}), 1, {"Unknown device"});
  const ParsedTrain fallback = parse({"--policy.device=cuda:1"});
  CHECK(fallback.config.policy.device() == "cpu");
  REQUIRE(fallback.warnings.size() == 1);
  CHECK_THAT(fallback.warnings[0], Catch::Contains("cuda:1") && Catch::Contains("cpu"));
  Environment gpus = world();
  gpus.devices.num_cuda = 1;
  CHECK(parse({"--policy.device=null"}, gpus).config.policy.device() == "cuda");
  CHECK(parse({"--policy.device=cuda:0"}, gpus).warnings.empty());
  CHECK(parse({"--policy.device=mps"}, gpus).config.policy.device() == "cuda");
}

TEST_CASE("settings: output_dir", "[settings]") {
  const Scratch scratch;
  scratch.write("run/keep.txt", "x");
  check_refused(refusal({"--output_dir=" + scratch / "run"}), 1, {scratch / "run", "already exists"});  // U062
  CHECK(slurp(scratch / "run/keep.txt") == "x");
  fs::create_directories(scratch / "empty");
  check_refused(refusal({"--output_dir=" + scratch / "empty"}), 1, {"already exists"});
  check_refused(refusal({"--output_dir=" + scratch / "run/keep.txt"}), 1, {"already exists"});
  const TrainConfig named = parse({"--job_name=trial"}).config;  // U063
  const std::time_t now = world().now;
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%d/%H-%M-%S", &local);
  CHECK(named.output_dir == std::string("outputs/train/") + stamp + "_trial");
  CHECK(to_json(named)["job_name"] == "trial");
  CHECK(parse({"--output_dir=" + scratch / "new"}).config.output_dir == scratch / "new");
  CHECK_FALSE(fs::exists(scratch / "new"));
}

TEST_CASE("settings: guarded variables", "[settings]") {
  CHECK(refusal({}).exit == 0);  // U069
  for (const char* name : {"ACCELERATE_USE_FSDP", "ACCELERATE_USE_PARALLELISM_CONFIG",
                           "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"}) {  // U070
    Environment environment = world();
    environment.variables[name] = "";
    check_refused(refusal({}, environment), 1, {name, "LEROBOT_ALLOW_ACCELERATE_ENV"});
    environment.variables["LEROBOT_ALLOW_ACCELERATE_ENV"] = "";
    check_refused(refusal({}, environment), 1, {name});
    environment.variables["LEROBOT_ALLOW_ACCELERATE_ENV"] = "1";
    CHECK(parse({}, environment).config.parallelism == parse({}).config.parallelism);  // U071
  }
  Environment all = world();
  for (const char* name :
       {"ACCELERATE_USE_PARALLELISM_CONFIG", "ACCELERATE_USE_FSDP", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"})
    all.variables[name] = "1";
  check_refused(refusal({}, all), 1,
                {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS, ACCELERATE_USE_FSDP, ACCELERATE_USE_PARALLELISM_CONFIG"});
  Environment harmless = world();
  harmless.variables["ACCELERATE_MIXED_PRECISION"] = "fp16";  // U072
  CHECK(parse({}, harmless).config.accelerator.mixed_precision == MixedPrecision::kNo);
}

TEST_CASE("settings: image transforms (D12)", "[settings]") {
  const ParsedTrain one =
      parse({"--dataset.image_transforms.enable=true",
             "--dataset.image_transforms.tfs={small: {weight: 1.0, type: Resize, kwargs: {size: [8, 8]}}}"});
  REQUIRE(one.config.dataset.image_transforms.tfs.size() == 1);
  CHECK(one.config.dataset.image_transforms.tfs[0].kwargs.dump() == R"({"size":[8,8]})");
  Environment environment = world();
  environment.image_transform_types = {"ColorJitter", "SharpnessJitter", "RandomAffine", "Resize"};
  CHECK(refusal({}, environment).exit == 0);
  check_refused(refusal({"--dataset.image_transforms.tfs={small: {type: Rezise}}"}, environment), 1,
                {"Rezise", "ColorJitter, SharpnessJitter"});
  check_refused(refusal({"--dataset.image_transforms.tfs={small: {wieght: 1}}"}, environment), 1,
                {"wieght", "weight", "not valid"});
}

TEST_CASE("settings: the order of checks", "[settings]") {
  const Scratch scratch;
  check_refused(refusal({"--bogus=1", "--steps=abc"}), 2, {"--bogus"});
  check_refused(refusal_bare({"--dataset.repo_id=u/d", "--steps=abc", "--policy.path=/nowhere"}), 1, {"steps"});
  check_refused(refusal({"--rename_map={a: b}", "--output_dir=" + (scratch / "")}), 1, {"rename_map"});
  check_refused(refusal({"--output_dir=" + (scratch / ""), "--use_policy_training_preset=false"}), 1,
                {"already exists"});
  check_refused(refusal({"--use_policy_training_preset=false", "--eval_steps=1"}), 1, {"Optimizer and Scheduler"});
  check_refused(refusal({"--eval_steps=1", "--policy.push_to_hub=true"}), 1, {"eval_steps"});
  check_refused(refusal({"--policy.push_to_hub=true", "--checkpoint_format=dcp"}), 1, {"repo_id"});
  Environment guarded = world(8);
  guarded.variables["ACCELERATE_USE_FSDP"] = "1";
  check_refused(refusal({"--checkpoint_format=dcp"}, guarded), 1, {"checkpoint_format"});
  check_refused(refusal({"--parallelism.dp_shard=3"}, guarded), 1, {"ACCELERATE_USE_FSDP"});
}
