#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "layout.hpp"
#include "lerobot/checkpoint/checkpoint.hpp"
#include "lerobot/config/train_config.hpp"
#include "lerobot/data/data.hpp"
#include "lerobot/optim/optim.hpp"
#include "lerobot/policies/registry.hpp"
#include "lerobot/processors/processors.hpp"
#include "lerobot/train/trainer.hpp"

namespace lerobot::train {

/// Where the loop stands.
struct Position {
  std::int64_t step = 0;         ///< loop steps done
  std::int64_t micro_step = 0;   ///< micro-batches done in the present accumulation window
  data::Progress progress;       ///< samples dealt after `step`
  data::Progress dealt;          ///< samples dealt so far; behind `progress` only while a window is replayed
  data::Progress window_start;   ///< samples dealt before the present window
  at::Tensor window_rng;         ///< this rank's generator state before the present window; with accumulation only
  std::int64_t num_replays = 0;  ///< micro-batches of an unfinished window to run again after a resume
};

/// Everything that a run is made of, set up and ready for its first step.
struct Run {
  Run(config::TrainConfig config_, Context context_, log::Logger& logger_, Seams seams_)
      : config(std::move(config_)), context(std::move(context_)), logger(logger_), seams(std::move(seams_)) {}
  Run(const Run&) = delete;  // the schedule refers to the optimizer: a run stays where it is
  Run& operator=(const Run&) = delete;

  config::TrainConfig config;
  Context context;
  log::Logger& logger;
  Seams seams;
  const policies::PolicyType* policy_type = nullptr;
  at::Device device{at::kCPU};
  comm::ProcessGroupPtr device_group;  ///< all ranks, for tensors of `device`

  std::shared_ptr<data::Dataset> train_set;
  std::shared_ptr<data::Dataset> eval_set;  ///< null without a held-out split
  std::vector<std::int64_t> eval_positions;
  std::int64_t train_frames = 0, train_episodes = 0;
  std::int64_t sampler_frames = 0;  ///< frames of an epoch: the training frames less those that the policy drops
  std::vector<std::string> camera_keys;

  std::shared_ptr<policies::Policy> policy;
  std::optional<processors::Pipeline> preprocessor, postprocessor;
  std::optional<optim::Optimizer> optimizer;
  std::optional<optim::LambdaSchedule> schedule;
  std::unique_ptr<Layout> layout;
  std::unique_ptr<data::BatchSource> batches;
  checkpoint::RngState rng;  ///< Python's and NumPy's words, passed from checkpoint to checkpoint
  std::unique_ptr<checkpoint::CheckpointManager> manager;  ///< made at the first save
  std::filesystem::path last_saved;                        ///< folder of the newest checkpoint of this process

  Position position;

  [[nodiscard]] std::int64_t dp_world() const { return config.parallelism.dp_world_size(); }
  [[nodiscard]] int dp_rank() const { return context.world->getRank(); }
  [[nodiscard]] bool is_main() const { return context.world->getRank() == 0; }
  /// Raw batch -> what the policy is given, on the device.
  [[nodiscard]] policies::Batch prepare(data::Batch raw);
  /// Remembers what a checkpoint inside the window that begins now needs.
  void begin_window();
  /// One more micro-batch was taken from the loader.
  void deal();
  /// One more loop step is done.
  void advance();
  void create_output_dir() const;
};

/// Builds a run from a checked configuration, a resumed one's state included.
///
/// Collective: over `context.world`.
[[nodiscard]] std::unique_ptr<Run> set_up(config::ParsedTrain parsed, Context context,
                                          const policies::Registry& registry, log::Logger& logger, Seams seams);

}  // namespace lerobot::train
