#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lerobot::checkpoint {

// Names below <output_dir>/checkpoints/<step>/; LeRobot (Python) uses the same.
inline constexpr std::string_view kCheckpointsDir = "checkpoints";
inline constexpr std::string_view kLastLink = "last";
inline constexpr std::string_view kPretrainedModelDir = "pretrained_model";
inline constexpr std::string_view kPretrainedModelEmaDir = "pretrained_model_ema";
inline constexpr std::string_view kTrainingStateDir = "training_state";

inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kTrainConfigFile = "train_config.json";
inline constexpr std::string_view kModelFile = "model.safetensors";
inline constexpr std::string_view kAdapterConfigFile = "adapter_config.json";
inline constexpr std::string_view kAdapterModelFile = "adapter_model.safetensors";
inline constexpr std::string_view kModelShardsDir = "pytorch_model_fsdp_0";

inline constexpr std::string_view kTrainingStepFile = "training_step.json";
inline constexpr std::string_view kRngStateFile = "rng_state.safetensors";
inline constexpr std::string_view kRankRngStatesFile = "rng_state_ranks.safetensors";
inline constexpr std::string_view kSchedulerFile = "scheduler_state.json";
inline constexpr std::string_view kScalerFile = "scaler_state.json";
inline constexpr std::string_view kRunSettingsFile = "run_settings.json";
inline constexpr std::string_view kOptimizerStateFile = "optimizer_state.safetensors";
inline constexpr std::string_view kOptimizerGroupsFile = "optimizer_param_groups.json";
inline constexpr std::string_view kOptimizerShardsDir = "optimizer_0";

/// The folder name of a step: decimal, padded to the digits of `total_steps` and to six; a longer step is not cut.
[[nodiscard]] std::string step_directory_name(std::int64_t step, std::int64_t total_steps);

/// The step that a folder name stands for; none for any other name.
[[nodiscard]] std::optional<std::int64_t> step_of_directory_name(std::string_view name);

/// The newest complete checkpoint below `checkpoints_dir`, by step number; none when there is none.
///
/// Complete means committed: folders under temporary names do not count, nor do those without a training_step.json.
[[nodiscard]] std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& checkpoints_dir);

/// What `--config_path` of a resume stands for.
struct ResumePaths {
  std::filesystem::path checkpoint;  ///< the step folder, links such as `last` followed
  std::filesystem::path pretrained_model;
  std::filesystem::path train_config;
};

/// Takes a train_config.json, a pretrained_model folder or a step folder; `last` may occur anywhere in the path.
///
/// Throws: Error{kCheckpoint} saying "no such file or directory" with the path; a hub id is never downloaded.
[[nodiscard]] ResumePaths resolve_resume_path(const std::filesystem::path& config_path);

}  // namespace lerobot::checkpoint
