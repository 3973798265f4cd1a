#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lerobot/config/enums.hpp"
#include "lerobot/config/topology.hpp"
#include "lerobot/core/dtype.hpp"
#include "lerobot/core/json.hpp"

// The settings of a training run as plain values. Key names, defaults and order are those of `train_config.json`;
// lib/config/describe.hpp ties each member to its key, type and line of help.
namespace lerobot::config {

/// One random change of pictures; `type` names it, `kwargs` sets it up.
struct ImageTransform {
  std::string name;
  double weight = 1.0;
  std::string type = "Identity";
  Json kwargs = Json::object();
  bool operator==(const ImageTransform&) const = default;
};

/// The six transforms of LeRobot, in its order.
[[nodiscard]] std::vector<ImageTransform> default_image_transforms();

struct ImageTransformsConfig {
  bool enable = false;
  std::int64_t max_num_transforms = 3;
  bool random_order = false;
  std::vector<ImageTransform> tfs = default_image_transforms();
  bool operator==(const ImageTransformsConfig&) const = default;
};

struct DatasetConfig {
  std::string repo_id;
  RepoType repo_type = RepoType::kDataset;
  std::optional<std::string> root;
  std::optional<std::vector<std::int64_t>> episodes;
  std::optional<std::vector<std::int64_t>> exclude_episodes;
  ImageTransformsConfig image_transforms;
  std::optional<std::string> revision;
  bool use_imagenet_stats = true;
  std::string video_backend = "pyav";
  bool return_uint8 = false;
  DepthUnit depth_output_unit = DepthUnit::kMillimetre;
  bool streaming = false;
  double eval_split = 0.0;
  bool operator==(const DatasetConfig&) const = default;
};

/// A policy's block as its `config.json` holds it: `type` first, then base and own settings, all decoded and checked.
struct PolicyConfig {
  Json settings = Json::object();

  [[nodiscard]] std::string type() const { return settings.at("type").get<std::string>(); }
  [[nodiscard]] std::string device() const { return text("device").value_or("cpu"); }  ///< resolved by parse_train
  [[nodiscard]] bool push_to_hub() const { return settings.at("push_to_hub").get<bool>(); }
  [[nodiscard]] bool use_peft() const { return settings.at("use_peft").get<bool>(); }
  [[nodiscard]] std::optional<std::string> repo_id() const { return text("repo_id"); }
  [[nodiscard]] std::optional<std::string> pretrained_path() const { return text("pretrained_path"); }
  bool operator==(const PolicyConfig&) const = default;

 private:
  [[nodiscard]] std::optional<std::string> text(const char* key) const {
    const Json& value = settings.at(key);
    return value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
  }
};

/// All optimizers in one struct; a kind uses, shows and stores only its own members.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdam;
  double lr = 1e-3;
  double weight_decay = 0.0;
  double grad_clip_norm = 10.0;             ///< <= 0: no clipping
  std::array<double, 2> betas{0.9, 0.999};  ///< adam, adamw
  double eps = 1e-8;                        ///< adam, adamw
  double momentum = 0.0;                    ///< sgd
  double dampening = 0.0;                   ///< sgd
  bool nesterov = false;                    ///< sgd
  Json optimizer_groups = Json::object();   ///< multi_adam
  bool operator==(const OptimizerConfig&) const = default;
};

/// The block that `--optimizer.type=<kind>` alone gives.
[[nodiscard]] OptimizerConfig default_optimizer(OptimizerKind kind);

/// All schedules in one struct; a kind uses, shows and stores only its own members.
struct SchedulerConfig {
  SchedulerKind kind = SchedulerKind::kDiffuser;
  std::string name = "cosine";                   ///< diffuser
  std::optional<std::int64_t> num_warmup_steps;  ///< null only for diffuser
  std::int64_t num_vqvae_training_steps = 0;     ///< vqbet
  double num_cycles = 0.5;                       ///< vqbet
  std::int64_t num_decay_steps = 0;              ///< cosine_decay_with_warmup
  double peak_lr = 0.0;                          ///< cosine_decay_with_warmup
  double decay_lr = 0.0;                         ///< cosine_decay_with_warmup
  bool operator==(const SchedulerConfig&) const = default;
};

struct GradScalerConfig {
  double init_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  bool operator==(const GradScalerConfig&) const = default;
};

/// The dtypes of a sharded run; a member that is null was not set.
struct MixedPrecisionPolicyConfig {
  std::optional<DType> param_dtype;
  std::optional<DType> reduce_dtype;
  std::optional<DType> output_dtype;
  std::optional<bool> cast_forward_inputs;
  bool operator==(const MixedPrecisionPolicyConfig&) const = default;
};

struct FsdpConfig {
  bool reshard_after_forward = true;
  std::optional<std::vector<std::string>> wrap_modules;
  std::optional<std::int64_t> min_num_params;
  bool cpu_offload = false;
  std::optional<std::string> ignored_modules;
  MixedPrecisionPolicyConfig mixed_precision_policy;
  bool operator==(const FsdpConfig&) const = default;
};

struct DdpConfig {
  bool find_unused_parameters = true;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool operator==(const DdpConfig&) const = default;
};

struct CompileConfig {
  bool enabled = false;
  std::string backend = "inductor";
  std::optional<std::string> mode;
  bool regional = true;
  bool operator==(const CompileConfig&) const = default;
};

struct AcceleratorConfig {
  MixedPrecision mixed_precision = MixedPrecision::kNo;
  struct GradientAccumulation {
    std::int64_t steps = 1;
    bool operator==(const GradientAccumulation&) const = default;
  } gradient_accumulation;
  GradScalerConfig grad_scaler;
  FsdpConfig fsdp;
  DdpConfig ddp;
  CompileConfig compile;
  struct Checkpointing {
    ActivationCheckpointing mode = ActivationCheckpointing::kNone;
    bool operator==(const Checkpointing&) const = default;
  } activation_checkpointing;
  bool operator==(const AcceleratorConfig&) const = default;
};

struct EvalConfig {
  std::int64_t n_episodes = 50;
  std::int64_t batch_size = 0;
  bool use_async_envs = true;
  bool recording = false;
  std::optional<std::string> recording_repo_id;
  bool recording_private = false;
  bool operator==(const EvalConfig&) const = default;
};

struct EmaConfig {
  bool enable = false;
  std::optional<double> decay;
  std::int64_t update_after_step = 0;
  double inv_gamma = 1.0;
  double power = 0.75;
  double min_decay = 0.0;
  double max_decay = 0.9999;
  bool use_for_eval = true;
  bool operator==(const EmaConfig&) const = default;
};

struct WandbConfig {
  bool enable = false;
  bool disable_artifact = false;
  std::string project = "lerobot";
  std::optional<std::string> entity;
  std::optional<std::string> notes;
  std::optional<std::string> run_id;
  std::optional<WandbMode> mode;
  bool add_tags = true;
  bool operator==(const WandbConfig&) const = default;
};

struct TrackioConfig {
  bool enable = false;
  std::string project = "lerobot";
  std::optional<std::string> space_id;
  std::optional<std::string> dataset_id;
  std::optional<bool> is_private;
  std::optional<std::string> run_id;
  bool operator==(const TrackioConfig&) const = default;
};

struct PeftConfig {
  std::optional<std::variant<std::vector<std::string>, std::string>> target_modules;
  std::optional<std::vector<std::string>> full_training_modules;
  std::string method_type = "LORA";
  std::optional<std::string> init_type;
  std::int64_t r = 16;
  std::optional<std::int64_t> lora_alpha;
  bool operator==(const PeftConfig&) const = default;
};

struct JobConfig {
  std::optional<std::string> target;
  std::string image = "huggingface/lerobot-gpu:latest";
  std::optional<std::string> timeout = "2d";
  bool detach = false;
  std::vector<std::string> tags;
  bool operator==(const JobConfig&) const = default;
};

/// Settings that LeRobot (Python) does not know. They are kept out of `train_config.json`, which it must be able to
/// read, and go to `training_state/run_settings.json`.
struct RunSettings {
  bool async_save = false;   ///< write checkpoints while training goes on
  double timeout_s = 600.0;  ///< how long a collective may wait for a rank
  OnNonfinite on_nonfinite = OnNonfinite::kStop;
  std::int64_t keep_last = 0;        ///< number of checkpoints kept; 0: all
  std::optional<std::int64_t> plan;  ///< only print the plan for this many ranks; not stored
  bool operator==(const RunSettings&) const = default;
};

/// Everything that decides a training run.
struct TrainConfig {
  DatasetConfig dataset;
  PolicyConfig policy;
  std::optional<std::string> output_dir;  ///< set by parse_train
  std::optional<std::string> job_name;    ///< set by parse_train
  Resume resume = Resume::kFalse;         ///< never kAuto after parse_train
  std::optional<std::int64_t> seed = 1000;
  bool cudnn_deterministic = false;
  std::optional<bool> tf32 = true;
  std::int64_t num_workers = 4;
  std::int64_t batch_size = 8;
  std::int64_t prefetch_factor = 4;
  bool persistent_workers = true;
  std::optional<LoaderContext> dataloader_multiprocessing_context = LoaderContext::kSpawn;
  std::int64_t steps = 100'000;
  std::int64_t env_eval_freq = 20'000;
  std::int64_t log_freq = 200;
  std::int64_t eval_steps = 0;
  std::int64_t max_eval_samples = 0;
  double tolerance_s = 1e-4;
  bool save_checkpoint = true;
  std::int64_t save_freq = 20'000;
  CheckpointFormat checkpoint_format = CheckpointFormat::kSafetensors;
  bool use_policy_training_preset = true;
  std::optional<OptimizerConfig> optimizer;  ///< set by parse_train
  std::optional<SchedulerConfig> scheduler;
  ParallelismConfig parallelism;  ///< resolved by parse_train
  AcceleratorConfig accelerator;
  EvalConfig eval;
  EmaConfig ema;
  WandbConfig wandb;
  TrackioConfig trackio;
  std::optional<PeftConfig> peft;
  JobConfig job;
  bool save_checkpoint_to_hub = false;
  std::vector<std::pair<std::string, std::string>> rename_map;
  std::optional<std::string> checkpoint_path;  ///< the checkpoint that a resumed run started from
  RunSettings run;
  bool operator==(const TrainConfig&) const = default;
};

}  // namespace lerobot::config
