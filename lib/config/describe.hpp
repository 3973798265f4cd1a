#pragma once

#include "lerobot/config/train_config.hpp"

// The one declaration of every setting: its key, the member that holds it, its line of help; type and default are the
// member's own. A visitor `v` gets them in the order of `train_config.json`. Three visitors exist: the schema is built,
// a config is read from JSON, and written to it.
namespace lerobot::config {

/// What else there is to say about a setting.
struct Traits {
  bool required = false;  ///< no default
  bool hidden = false;    ///< in files only
};

template <typename V>
void describe(V& v, ImageTransformsConfig& c) {
  v.setting("enable", c.enable, "change the pictures of training at random");
  v.setting("max_num_transforms", c.max_num_transforms, "at most this many of `tfs` for one picture");
  v.setting("random_order", c.random_order, "apply them in the order in which they were drawn");
  v.setting("tfs", c.tfs, "name -> {weight, type, kwargs}");
}

template <typename V>
void describe(V& v, DatasetConfig& c) {
  v.setting("repo_id", c.repo_id, "name of the dataset, user/name", Traits{.required = true});
  v.setting("repo_type", c.repo_type, "kind of repository; buckets can only be streamed");
  v.setting("root", c.root, "folder of the dataset; null: $HF_LEROBOT_HOME/<repo_id>");
  v.setting("episodes", c.episodes, "episodes to use, in this order; null: all");
  v.setting("exclude_episodes", c.exclude_episodes, "episodes to leave out");
  v.block("image_transforms", c.image_transforms, "random changes of pictures");
  v.setting("revision", c.revision, "revision of the dataset; stored");
  v.setting("use_imagenet_stats", c.use_imagenet_stats, "normalise cameras by the statistics of ImageNet");
  v.setting("video_backend", c.video_backend, "name of the video decoder; stored");
  v.setting("return_uint8", c.return_uint8, "decode pictures as bytes; training divides them by 255");
  v.setting("depth_output_unit", c.depth_output_unit, "unit of depth pictures");
  v.setting("streaming", c.streaming, "read the dataset while it is downloaded");
  v.setting("eval_split", c.eval_split, "share of the episodes of each task held out for evaluation, 0 <= x < 1");
}

template <typename V>
void describe(V& v, OptimizerConfig& c) {
  v.setting("lr", c.lr, "learning rate");
  v.setting("weight_decay", c.weight_decay, "weight decay");
  v.setting("grad_clip_norm", c.grad_clip_norm, "gradients are scaled down to this norm; 0: never");
  if (c.kind == OptimizerKind::kAdam || c.kind == OptimizerKind::kAdamW) {
    v.setting("betas", c.betas, "decay of the two moments");
    v.setting("eps", c.eps, "added to the root of the second moment");
  } else if (c.kind == OptimizerKind::kSgd) {
    v.setting("momentum", c.momentum, "share of the last update that goes on");
    v.setting("dampening", c.dampening, "share of the gradient kept out of the momentum");
    v.setting("nesterov", c.nesterov, "look ahead along the momentum");
  } else {
    v.setting("optimizer_groups", c.optimizer_groups, "name -> settings of one Adam each");
  }
}

template <typename V>
void describe(V& v, SchedulerConfig& c) {
  if (c.kind == SchedulerKind::kDiffuser) {
    v.setting("name", c.name, "constant, constant_with_warmup, linear, cosine, cosine_with_restarts or polynomial");
    v.setting("num_warmup_steps", c.num_warmup_steps, "steps of warm-up");
    return;
  }
  // Only the constant schedule has a default; no kind but `diffuser` may go without the number.
  if (c.kind == SchedulerKind::kConstantWithWarmup) c.num_warmup_steps = c.num_warmup_steps.value_or(1000);
  v.number("num_warmup_steps", c.num_warmup_steps, "steps of warm-up",
           Traits{.required = c.kind != SchedulerKind::kConstantWithWarmup});
  if (c.kind == SchedulerKind::kVqBet) {
    v.setting("num_vqvae_training_steps", c.num_vqvae_training_steps, "steps at the full rate before the warm-up",
              Traits{.required = true});
    v.setting("num_cycles", c.num_cycles, "cosine waves until the end");
  } else if (c.kind == SchedulerKind::kCosineDecayWithWarmup) {
    v.setting("num_decay_steps", c.num_decay_steps, "steps until the lowest rate", Traits{.required = true});
    v.setting("peak_lr", c.peak_lr, "rate at the top", Traits{.required = true});
    v.setting("decay_lr", c.decay_lr, "rate at the end", Traits{.required = true});
  }
}

template <typename V>
void describe(V& v, ContextParallelConfig& c) {
  v.setting("ring_degree", c.ring_degree, "must be 1 for training");
  v.setting("ulysses_degree", c.ulysses_degree, "must be 1 for training");
}

template <typename V>
void describe(V& v, ParallelismConfig& c) {
  v.setting("dp_replicate", c.dp_replicate, "copies of the model; with dp_shard=1 and several ranks: DDP");
  v.setting("dp_shard", c.dp_shard, "ranks that share one copy (FSDP); -1: all that are left");
  v.block("context_parallel", c.context_parallel, "sequence parallelism");
  v.setting("cfg_parallel", c.cfg_parallel, "must be 1 for training");
}

template <typename V>
void describe(V& v, AcceleratorConfig::GradientAccumulation& c) {
  v.setting("steps", c.steps, "micro-batches per optimizer update");
}

template <typename V>
void describe(V& v, GradScalerConfig& c) {
  v.setting("init_scale", c.init_scale, "factor of the loss at the start");
  v.setting("growth_factor", c.growth_factor, "the scale grows by it, > 1");
  v.setting("backoff_factor", c.backoff_factor, "the scale shrinks by it after an overflow, between 0 and 1");
  v.setting("growth_interval", c.growth_interval, "updates without overflow before the scale grows");
}

template <typename V>
void describe(V& v, MixedPrecisionPolicyConfig& c) {
  v.setting("param_dtype", c.param_dtype, "dtype of gathered parameters");
  v.setting("reduce_dtype", c.reduce_dtype, "dtype in which gradients are summed");
  v.setting("output_dtype", c.output_dtype, "dtype of a unit's outputs");
  v.setting("cast_forward_inputs", c.cast_forward_inputs, "cast a unit's inputs to param_dtype");
}

template <typename V>
void describe(V& v, FsdpConfig& c) {
  v.setting("reshard_after_forward", c.reshard_after_forward, "free gathered parameters between forward and backward");
  v.setting("wrap_modules", c.wrap_modules, "class names of the wrap units; null: the policy's own");
  v.setting("min_num_params", c.min_num_params, "instead: every module with more parameters is a unit");
  v.setting("cpu_offload", c.cpu_offload, "keep shards, gradients and optimizer state in CPU memory");
  v.setting("ignored_modules", c.ignored_modules, "regular expression; matching modules stay whole");
  v.block("mixed_precision_policy", c.mixed_precision_policy, "dtypes of a sharded run, one by one");
}

template <typename V>
void describe(V& v, DdpConfig& c) {
  v.setting("find_unused_parameters", c.find_unused_parameters, "parameters may go without gradient");
  v.setting("gradient_as_bucket_view", c.gradient_as_bucket_view, "gradients share memory with the buckets");
  v.setting("static_graph", c.static_graph, "the same parameters are used in every step");
}

template <typename V>
void describe(V& v, CompileConfig& c) {
  v.setting("enabled", c.enabled, "not available; must be false");
  v.setting("backend", c.backend, "stored");
  v.setting("mode", c.mode, "stored");
  v.setting("regional", c.regional, "stored");
}

template <typename V>
void describe(V& v, AcceleratorConfig::Checkpointing& c) {
  v.setting("mode", c.mode, "full: recompute the activations of wrap units in backward");
}

template <typename V>
void describe(V& v, AcceleratorConfig& c) {
  v.setting("mixed_precision", c.mixed_precision, "precision of forward and backward; fp16 needs a GPU");
  v.block("gradient_accumulation", c.gradient_accumulation, "several micro-batches per update");
  v.block("grad_scaler", c.grad_scaler, "loss scaling of fp16");
  v.block("fsdp", c.fsdp, "sharded runs");
  v.block("ddp", c.ddp, "runs with whole copies");
  v.block("compile", c.compile, "compilation of the model");
  v.block("activation_checkpointing", c.activation_checkpointing, "memory against time");
}

template <typename V>
void describe(V& v, EvalConfig& c) {
  v.setting("n_episodes", c.n_episodes, "episodes per evaluation");
  v.setting("batch_size", c.batch_size, "environments side by side; 0: automatic");
  v.setting("use_async_envs", c.use_async_envs, "one process per environment");
  v.setting("recording", c.recording, "record the episodes as a dataset");
  v.setting("recording_repo_id", c.recording_repo_id, "repository of the recording");
  v.setting("recording_private", c.recording_private, "make that repository private");
}

template <typename V>
void describe(V& v, EmaConfig& c) {
  v.setting("enable", c.enable, "keep a moving average of the weights");
  v.setting("decay", c.decay, "constant decay; null: the warm-up below");
  v.setting("update_after_step", c.update_after_step, "updates before which the average is a copy");
  v.setting("inv_gamma", c.inv_gamma, "inverse factor of the warm-up");
  v.setting("power", c.power, "exponent of the warm-up");
  v.setting("min_decay", c.min_decay, "lower limit of the decay");
  v.setting("max_decay", c.max_decay, "upper limit of the decay");
  v.setting("use_for_eval", c.use_for_eval, "evaluate the average in the simulator");
}

template <typename V>
void describe(V& v, WandbConfig& c) {
  v.setting("enable", c.enable, "log to Weights & Biases");
  v.setting("disable_artifact", c.disable_artifact, "do not upload checkpoints");
  v.setting("project", c.project, "project name");
  v.setting("entity", c.entity, "user or team");
  v.setting("notes", c.notes, "notes of the run");
  v.setting("run_id", c.run_id, "run to go on with");
  v.setting("mode", c.mode, "where records go");
  v.setting("add_tags", c.add_tags, "tag the run with its configuration");
}

template <typename V>
void describe(V& v, TrackioConfig& c) {
  v.setting("enable", c.enable, "log to Trackio");
  v.setting("project", c.project, "project name");
  v.setting("space_id", c.space_id, "space that shows the records");
  v.setting("dataset_id", c.dataset_id, "dataset that keeps the records");
  v.setting("private", c.is_private, "make them private");
  v.setting("run_id", c.run_id, "run to go on with; null: last part of output_dir");
}

template <typename V>
void describe(V& v, PeftConfig& c) {
  v.setting("target_modules", c.target_modules, "modules that get an adapter: names, or one regular expression");
  v.setting("full_training_modules", c.full_training_modules, "modules trained in full beside the adapters");
  v.setting("method_type", c.method_type, "kind of adapter: LORA");
  v.setting("init_type", c.init_type, "how adapters start; null or gaussian");
  v.setting("r", c.r, "rank of the adapters");
  v.setting("lora_alpha", c.lora_alpha, "scale is lora_alpha / r; null: 8");
}

template <typename V>
void describe(V& v, JobConfig& c) {
  v.setting("target", c.target, "where to train: null or local");
  v.setting("image", c.image, "stored");
  v.setting("timeout", c.timeout, "stored");
  v.setting("detach", c.detach, "stored");
  v.setting("tags", c.tags, "stored");
}

template <typename V>
void describe(V& v, RunSettings& c) {
  v.own_setting("async_save", c.async_save, "write checkpoints while training goes on");
  v.own_setting("timeout_s", c.timeout_s, "seconds that a collective waits for a missing rank");
  v.own_setting("on_nonfinite", c.on_nonfinite, "what to do with a non-finite gradient: stop, or skip the update");
  v.own_setting("keep_last", c.keep_last, "keep this many checkpoints; 0: all");
  v.own_setting("plan", c.plan, "only print memory and traffic for this many ranks, then leave");
}

template <typename V>
void describe(V& v, TrainConfig& c) {
  v.block("dataset", c.dataset, "what to train on");
  v.unsupported("env", "simulation environment");
  v.policy("policy", c.policy, "what to train");
  v.unsupported("reward_model", "reward model");
  v.setting("output_dir", c.output_dir, "where results go; null: outputs/train/<date>/<time>_<job_name>");
  v.setting("job_name", c.job_name, "name of the run; null: the policy's type");
  v.setting("resume", c.resume, "go on from a checkpoint; auto: from the newest in output_dir, if there is one");
  v.setting("seed", c.seed, "seed of weights, order and noise; null: unseeded");
  v.setting("cudnn_deterministic", c.cudnn_deterministic, "repeatable cuDNN kernels, slower");
  v.setting("tf32", c.tf32, "allow TF32 on GPUs; null: leave the library's setting");
  v.setting("num_workers", c.num_workers, "loader threads per rank");
  v.setting("batch_size", c.batch_size, "samples per rank and step");
  v.setting("prefetch_factor", c.prefetch_factor, "batches that each loader thread prepares ahead");
  v.setting("persistent_workers", c.persistent_workers, "keep loader threads between epochs");
  v.setting("dataloader_multiprocessing_context", c.dataloader_multiprocessing_context,
            "stored; the loader uses threads");
  v.setting("steps", c.steps, "micro-batches per rank in all");
  v.setting("env_eval_freq", c.env_eval_freq, "steps between evaluations in the simulator; 0: never");
  v.setting("log_freq", c.log_freq, "steps between log lines; 0: never");
  v.setting("eval_steps", c.eval_steps, "steps between held-out losses; 0: never");
  v.setting("max_eval_samples", c.max_eval_samples, "held-out samples per evaluation, spread over tasks; 0: all");
  v.setting("tolerance_s", c.tolerance_s, "seconds that a frame may be off its time stamp");
  v.setting("save_checkpoint", c.save_checkpoint, "write checkpoints");
  v.setting("save_freq", c.save_freq, "steps between checkpoints; 0: only the last");
  v.setting("checkpoint_format", c.checkpoint_format,
            "form of the weights; dcp and safetensors_dcp need a sharded run");
  v.setting("use_policy_training_preset", c.use_policy_training_preset, "optimizer and scheduler of the policy");
  v.choice("optimizer", c.optimizer, "optimizer");
  v.choice("scheduler", c.scheduler, "learning-rate schedule");
  v.block("parallelism", c.parallelism, "layout of the processes");
  v.block("accelerator", c.accelerator, "precision, accumulation, engines");
  v.block("eval", c.eval, "evaluation in the simulator");
  v.block("ema", c.ema, "moving average of the weights");
  v.block("wandb", c.wandb, "Weights & Biases");
  v.block("trackio", c.trackio, "Trackio");
  v.optional_block("peft", c.peft, "adapters");
  v.block("job", c.job, "where the job runs");
  v.setting("save_checkpoint_to_hub", c.save_checkpoint_to_hub, "publish every checkpoint");
  v.unsupported("sample_weighting", "weights of samples");
  v.setting("rename_map", c.rename_map, "dataset key -> policy key of observations");
  v.setting("checkpoint_path", c.checkpoint_path, "where a resumed run started", Traits{.hidden = true});
  describe(v, c.run);
}

}  // namespace lerobot::config
