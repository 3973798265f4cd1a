#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/checkpoint/layout.hpp"
#include "lerobot/checkpoint/rng_state.hpp"
#include "lerobot/checkpoint/training_step.hpp"
#include "lerobot/core/json.hpp"
#include "lerobot/mesh/tensor_slice.hpp"

namespace lerobot::checkpoint {

/// How the model of a sharded run is stored; see `--checkpoint_format`.
enum class CheckpointFormat {
  kSafetensors,     ///< one gathered model.safetensors
  kDcp,             ///< a folder of shards
  kSafetensorsDcp,  ///< both
};

/// Throws: Error{kConfig} listing the three names.
[[nodiscard]] CheckpointFormat parse_checkpoint_format(std::string_view text);
[[nodiscard]] std::string_view to_string(CheckpointFormat format);

/// The state of one optimizer.
///
/// `state` names its entries by index ("state/0/exp_avg") in a run that is not sharded, by FQN
/// ("state.<fqn>.exp_avg") in a sharded one; `groups` holds indices or FQNs alike.
struct OptimizerContents {
  std::string name;  ///< empty when it is the only one
  mesh::StateDict state;
  Json groups;
};

/// What one rank puts into a checkpoint. The room knows names, tensors and JSON, never a policy or an optimizer.
struct CheckpointContents {
  std::int64_t total_steps = 0;  ///< gives the width of the folder's name
  TrainingStep training_step;
  mesh::StateDict model;  ///< parameters and persistent buffers
  std::string model_file{kModelFile};
  std::vector<OptimizerContents> optimizers;
  std::optional<Json> scheduler;
  std::optional<Json> scaler;
  std::optional<Json> run_settings;  ///< settings that LeRobot (Python) does not know
  RngState rng;                      ///< Python's and NumPy's parts; torch's come from `rank_rng`
  TorchRngStates rank_rng;           ///< of this rank
  /// Write further files below pretrained_model/ and training_state/. Called on the main rank only; may be empty.
  std::function<void(const std::filesystem::path& directory)> write_model_files;
  std::function<void(const std::filesystem::path& directory)> write_state_files;
};

}  // namespace lerobot::checkpoint
