#include "lerobot/config/validate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <regex>
#include <set>

#include "lerobot/config/built_features.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::config {
namespace {

template <typename T>
void require(bool holds, std::string_view name, const T& value, std::string_view expected) {
  if (!holds) fail(ErrorKind::kConfig, "{}={}: expected {}.", name, value, expected);
}

void check(DatasetConfig& c, std::vector<std::string>& warnings) {
  if (c.repo_id.empty() || c.repo_id.front() == '[')
    fail(ErrorKind::kConfig,
         "dataset.repo_id=\"{}\": expected one name; training on several datasets at once is not implemented.",
         c.repo_id);
  if (c.repo_type == RepoType::kBucket) {
    if (!c.streaming)
      fail(ErrorKind::kConfig, "dataset.repo_type=bucket: buckets are streaming-only; set dataset.streaming=true.");
    if (c.eval_split != 0.0)
      fail(ErrorKind::kConfig,
           "dataset.repo_type=bucket with dataset.eval_split={}: a streamed dataset has no held-out part; set "
           "eval_split=0.",
           c.eval_split);
  }
  if (c.episodes) {
    std::set<std::int64_t> seen;
    std::set<std::int64_t> twice;
    for (const std::int64_t episode : *c.episodes) {
      if (episode < 0) fail(ErrorKind::kConfig, "dataset.episodes: episodes must be non-negative, got {}.", episode);
      if (!seen.insert(episode).second) twice.insert(episode);
    }
    if (!twice.empty())
      fail(ErrorKind::kConfig, "dataset.episodes: duplicates [{}]; name each episode once.", fmt::join(twice, ", "));
  }
  if (c.exclude_episodes) {
    std::vector<std::int64_t> kept;
    std::set<std::int64_t> negative;
    for (const std::int64_t episode : *c.exclude_episodes)
      if (episode < 0)
        negative.insert(episode);
      else
        kept.push_back(episode);
    if (!negative.empty())
      warnings.push_back(
          fmt::format("dataset.exclude_episodes: [{}] are no episodes and are ignored.", fmt::join(negative, ", ")));
    c.exclude_episodes = std::move(kept);
  }
  require(c.eval_split >= 0.0 && c.eval_split < 1.0, "dataset.eval_split", c.eval_split, "0 <= eval_split < 1");
  require(c.image_transforms.max_num_transforms >= 1, "dataset.image_transforms.max_num_transforms",
          c.image_transforms.max_num_transforms, "1 or more");
}

void check(const AcceleratorConfig& c) {
  require(c.gradient_accumulation.steps >= 1, "accelerator.gradient_accumulation.steps", c.gradient_accumulation.steps,
          "1 or more");
  require(c.grad_scaler.init_scale > 0.0, "accelerator.grad_scaler.init_scale", c.grad_scaler.init_scale,
          "more than 0");
  require(c.grad_scaler.growth_factor > 1.0, "accelerator.grad_scaler.growth_factor", c.grad_scaler.growth_factor,
          "more than 1");
  require(c.grad_scaler.backoff_factor > 0.0 && c.grad_scaler.backoff_factor < 1.0,
          "accelerator.grad_scaler.backoff_factor", c.grad_scaler.backoff_factor,
          "a number between 0 and 1, both excluded");
  require(c.grad_scaler.growth_interval >= 1, "accelerator.grad_scaler.growth_interval", c.grad_scaler.growth_interval,
          "1 or more");
  const FsdpConfig& fsdp = c.fsdp;
  if (fsdp.min_num_params) {
    require(*fsdp.min_num_params >= 1, "accelerator.fsdp.min_num_params", *fsdp.min_num_params, "1 or more, or null");
    if (fsdp.wrap_modules && !fsdp.wrap_modules->empty())
      fail(ErrorKind::kConfig,
           "accelerator.fsdp.wrap_modules=[{}] and accelerator.fsdp.min_num_params={} are mutually exclusive; "
           "choose wrap units by class or by size.",
           fmt::join(*fsdp.wrap_modules, ", "), *fsdp.min_num_params);
  }
  if (fsdp.ignored_modules) {
    constexpr std::size_t kMaxPattern = 1000;  // std::regex recurses over what it compiles
    require(fsdp.ignored_modules->size() <= kMaxPattern, "accelerator.fsdp.ignored_modules",
            fsdp.ignored_modules->size(), "at most 1000 characters");
    try {
      static_cast<void>(std::regex(*fsdp.ignored_modules));
    } catch (const std::regex_error& error) {
      fail(ErrorKind::kConfig, "accelerator.fsdp.ignored_modules=\"{}\" is no regular expression: {}.",
           *fsdp.ignored_modules, error.what());
    }
  }
}

void check(const EmaConfig& c) {
  require(c.min_decay >= 0.0 && c.min_decay <= c.max_decay && c.max_decay <= 1.0, "ema.min_decay",
          fmt::format("{}, ema.max_decay={}", c.min_decay, c.max_decay), "0 <= min_decay <= max_decay <= 1");
  require(c.inv_gamma > 0.0, "ema.inv_gamma", c.inv_gamma, "more than 0");
  require(c.power > 0.0, "ema.power", c.power, "more than 0");
  require(c.update_after_step >= 0, "ema.update_after_step", c.update_after_step, "0 or more");
  if (!c.decay) return;
  require(*c.decay >= 0.0 && *c.decay <= 1.0, "ema.decay", *c.decay, "0 <= decay <= 1, or null");
  const EmaConfig standard;
  if (c.min_decay != standard.min_decay || c.max_decay != standard.max_decay)
    fail(ErrorKind::kConfig,
         "ema.decay={} and ema.min_decay={}, ema.max_decay={} are mutually exclusive: a constant decay has no limits.",
         *c.decay, c.min_decay, c.max_decay);
}

void check(const PeftConfig& c) {
  std::string method = c.method_type;
  std::transform(method.begin(), method.end(), method.begin(),
                 [](unsigned char ch) { return static_cast<char>(std::toupper(ch)); });
  require(method == "LORA", "peft.method_type", c.method_type, "LORA");
  require(c.r >= 1, "peft.r", c.r, "1 or more");
  if (c.lora_alpha) require(*c.lora_alpha >= 1, "peft.lora_alpha", *c.lora_alpha, "1 or more, or null");
  if (c.init_type) require(*c.init_type == "gaussian", "peft.init_type", *c.init_type, "gaussian or null");
}

void check(const RunSettings& c) {
  require(c.timeout_s > 0.0, "timeout_s", c.timeout_s, "more than 0 seconds");
  require(c.keep_last >= 0, "keep_last", c.keep_last, "0 (all) or more");
  if (c.plan) require(*c.plan >= 1, "plan", *c.plan, "a number of ranks, 1 or more");
}

void check_policy_dtypes(const AcceleratorConfig& c) {
  const MixedPrecisionPolicyConfig& policy = c.fsdp.mixed_precision_policy;
  for (const auto& [name, dtype] : {std::pair{"param_dtype", policy.param_dtype},
                                    {"reduce_dtype", policy.reduce_dtype},
                                    {"output_dtype", policy.output_dtype}})
    if (dtype == DType::kF16 && c.mixed_precision != MixedPrecision::kFp16)
      fail(ErrorKind::kConfig,
           "accelerator.fsdp.mixed_precision_policy.{}=float16 needs the loss scaler of "
           "accelerator.mixed_precision=fp16, got mixed_precision={}.",
           name, text(c.mixed_precision));
}

}  // namespace

void check_settings(TrainConfig& config, std::vector<std::string>& warnings) {
  check(config.dataset, warnings);
  require(config.num_workers >= 0, "num_workers", config.num_workers, "0 or more");
  require(config.batch_size >= 1, "batch_size", config.batch_size, "1 or more");
  require(config.prefetch_factor >= 1, "prefetch_factor", config.prefetch_factor, "1 or more");
  require(config.steps >= 1, "steps", config.steps, "1 or more");
  require(config.max_eval_samples >= 0, "max_eval_samples", config.max_eval_samples, "0 (all) or more");
  require(config.tolerance_s >= 0.0, "tolerance_s", config.tolerance_s, "0 or more seconds");
  check_degrees(config.parallelism);
  check(config.accelerator);
  if (config.eval.recording_repo_id && !config.eval.recording)
    fail(ErrorKind::kConfig, "eval.recording_repo_id=\"{}\" needs eval.recording=true.",
         *config.eval.recording_repo_id);
  check(config.ema);
  if (config.peft) check(*config.peft);
  if (config.job.target && *config.job.target != "local")
    fail(ErrorKind::kConfig, "job.target=\"{}\": jobs on other machines are not supported; use null or local.",
         *config.job.target);
  check(config.run);
}

void check_settings(const OptimizerConfig& c) {
  require(c.lr >= 0.0, "optimizer.lr", c.lr, "0 or more");
  require(c.weight_decay >= 0.0, "optimizer.weight_decay", c.weight_decay, "0 or more");
  require(c.eps >= 0.0, "optimizer.eps", c.eps, "0 or more");
  for (const double beta : c.betas)
    require(beta >= 0.0 && beta < 1.0, "optimizer.betas", fmt::format("[{}, {}]", c.betas[0], c.betas[1]),
            "0 <= beta < 1");
  require(c.momentum >= 0.0, "optimizer.momentum", c.momentum, "0 or more");
  if (c.nesterov && (c.momentum <= 0.0 || c.dampening != 0.0))
    fail(ErrorKind::kConfig,
         "optimizer.nesterov=true needs a momentum and no dampening, got momentum={}, dampening={}.", c.momentum,
         c.dampening);
}

void check_settings(const SchedulerConfig& c) {
  if (c.num_warmup_steps)
    require(*c.num_warmup_steps >= 0, "scheduler.num_warmup_steps", *c.num_warmup_steps, "0 or more");
  if (c.kind == SchedulerKind::kDiffuser) {
    constexpr std::array<std::string_view, 6> kNames{"constant", "constant_with_warmup", "linear",
                                                     "cosine",   "cosine_with_restarts", "polynomial"};
    if (std::find(kNames.begin(), kNames.end(), c.name) == kNames.end())
      fail(ErrorKind::kConfig, "scheduler.name=\"{}\": expected one of {}.", c.name, fmt::join(kNames, ", "));
    if (!c.num_warmup_steps && c.name != "constant")
      fail(ErrorKind::kConfig,
           "scheduler.num_warmup_steps is null, but scheduler.name={} has a warm-up; give a number.", c.name);
  } else if (c.kind == SchedulerKind::kVqBet) {
    require(c.num_vqvae_training_steps >= 0, "scheduler.num_vqvae_training_steps", c.num_vqvae_training_steps,
            "0 or more");
  } else if (c.kind == SchedulerKind::kCosineDecayWithWarmup) {
    require(c.num_decay_steps >= 1, "scheduler.num_decay_steps", c.num_decay_steps, "1 or more");
    require(c.peak_lr > 0.0, "scheduler.peak_lr", c.peak_lr, "more than 0");
    require(c.decay_lr >= 0.0, "scheduler.decay_lr", c.decay_lr, "0 or more");
  }
}

void check_combinations(const TrainConfig& config) {
  const ParallelismConfig& p = config.parallelism;
  if (p.context_parallel.ring_degree > 1 || p.context_parallel.ulysses_degree > 1)
    fail(ErrorKind::kConfig,
         "parallelism.context_parallel: Context parallelism is not implemented; ring_degree={} and ulysses_degree={} "
         "must be 1.",
         p.context_parallel.ring_degree, p.context_parallel.ulysses_degree);
  if (p.cfg_parallel != 1)
    fail(ErrorKind::kConfig, "parallelism.cfg_parallel={} is inference-only; it must be 1 for training.",
         p.cfg_parallel);
  if (config.accelerator.compile.enabled)
    fail(ErrorKind::kConfig,
         "accelerator.compile.enabled=true: compilation of the model is not supported; set it to false.");
  if (config.checkpoint_format != CheckpointFormat::kSafetensors && !p.sharded())
    fail(ErrorKind::kConfig,
         "checkpoint_format={} needs a sharded run, but parallelism.dp_shard=1; set --parallelism.dp_shard to a "
         "number of ranks or -1, or use checkpoint_format=safetensors.",
         text(config.checkpoint_format));
  if (config.optimizer && config.optimizer->kind == OptimizerKind::kMultiAdam)
    fail(ErrorKind::kConfig,
         "optimizer.type=multi_adam: Multi-optimizer runs are not supported; use adam, adamw or sgd.");
  if (config.ema.enable && p.sharded())
    fail(ErrorKind::kConfig,
         "ema.enable=true does not work with a sharded run (parallelism.dp_shard={}); switch one of them off.",
         p.dp_shard);
  if (config.ema.enable && config.peft)
    fail(ErrorKind::kConfig, "ema.enable=true does not work with PEFT (peft.method_type={}); switch one of them off.",
         config.peft->method_type);
  if (config.peft && !config.policy.pretrained_path())
    fail(ErrorKind::kConfig,
         "peft: adapters need a base to adapt, but policy.pretrained_path is null; start from --policy.path.");
  if (config.accelerator.mixed_precision == MixedPrecision::kFp16 && config.policy.device() == "cpu")
    fail(ErrorKind::kConfig, "accelerator.mixed_precision=fp16 needs a GPU, but policy.device is cpu; use bf16 or no.");
  check_policy_dtypes(config.accelerator);
}

void refuse_unbuilt(const TrainConfig& config, const BuiltFeatures& built) {
  const auto refuse = [](std::string_view setting, const auto& value) {
    fail(ErrorKind::kConfig, "{}={}: not in this version; leave it at its default.", setting, value);
  };
  if (config.parallelism.sharded() && !built.sharding) refuse("parallelism.dp_shard", config.parallelism.dp_shard);
  const MixedPrecision precision = config.accelerator.mixed_precision;
  if ((precision == MixedPrecision::kBf16 && !built.bf16) || (precision == MixedPrecision::kFp16 && !built.fp16))
    refuse("accelerator.mixed_precision", text(precision));
  if (config.accelerator.fsdp.cpu_offload && !built.cpu_offload) refuse("accelerator.fsdp.cpu_offload", true);
  if (config.accelerator.activation_checkpointing.mode != ActivationCheckpointing::kNone &&
      !built.activation_checkpointing)
    refuse("accelerator.activation_checkpointing.mode", text(config.accelerator.activation_checkpointing.mode));
  if (config.peft && !built.peft) refuse("peft.method_type", config.peft->method_type);
  if (config.policy.use_peft() && !built.peft) refuse("policy.use_peft", true);
  if (config.ema.enable && !built.ema) refuse("ema.enable", true);
  if (config.run.async_save && !built.async_save) refuse("async_save", true);
  if (config.run.plan && !built.plan) refuse("plan", *config.run.plan);
  if (config.wandb.enable && !built.wandb) refuse("wandb.enable", true);
  if (config.trackio.enable && !built.trackio) refuse("trackio.enable", true);
  if (config.dataset.streaming && !built.streaming) refuse("dataset.streaming", true);
  if (config.eval.recording && !built.eval_recording) refuse("eval.recording", true);
  if (config.save_checkpoint_to_hub && !built.save_checkpoint_to_hub) refuse("save_checkpoint_to_hub", true);
}

}  // namespace lerobot::config
