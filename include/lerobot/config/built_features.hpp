#pragma once

#include "lerobot/config/train_config.hpp"

namespace lerobot::config {

/// Which documented features this build of the program has. What is false is refused before the run begins.
struct BuiltFeatures {
  bool sharding = false;  ///< dp_shard != 1
  bool bf16 = false;
  bool fp16 = false;
  bool cpu_offload = false;
  bool activation_checkpointing = false;
  bool peft = false;
  bool ema = false;
  bool async_save = false;
  bool plan = false;
  bool wandb = false;
  bool trackio = false;
  bool streaming = false;  ///< dataset.streaming
  bool eval_recording = false;
  bool save_checkpoint_to_hub = false;

  /// Everything that can be switched on, for tests of the settings themselves.
  static constexpr BuiltFeatures all() {
    return {true, true, true, true, true, true, true, true, true, true, true, true, true, true};
  }
};

/// Stops a run that asks for a feature which this build does not have. The only place that knows.
///
/// Throws: Error{kConfig} with the flag, its value and "not in this version".
void refuse_unbuilt(const TrainConfig& config, const BuiltFeatures& built);

}  // namespace lerobot::config
