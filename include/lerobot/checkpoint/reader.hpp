#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/checkpoint/rng_state.hpp"
#include "lerobot/checkpoint/training_step.hpp"
#include "lerobot/core/json.hpp"
#include "lerobot/mesh/tensor_slice.hpp"

namespace lerobot::checkpoint {

/// Names that did not meet when a model was loaded.
struct LoadReport {
  std::vector<std::string> missing;     ///< wanted, not in the checkpoint
  std::vector<std::string> unexpected;  ///< in the checkpoint, not wanted
};

/// Loads the tensors of a pretrained_model folder, whole or by rows, from whichever form it has.
///
/// Bytes that are read are verified against the manifest of the checkpoint; a folder without one (made by LeRobot
/// (Python), or copied out of its checkpoint) is read as it is.
class ModelReader {
 public:
  /// `model_file`: "model.safetensors", or "adapter_model.safetensors".
  /// Throws: Error{kCheckpoint} naming the folder when it holds neither this file nor shards.
  explicit ModelReader(const std::filesystem::path& pretrained_model,
                       std::string_view model_file = "model.safetensors");
  ~ModelReader();

  /// Fills every tensor whose name is stored with its rows; the dtype of the destination stays.
  ///
  /// Not collective: every rank reads what it needs.
  /// Throws: Error{kCheckpoint} naming file and tensor for another shape or for damage.
  LoadReport load(const mesh::StateDict& to) const;

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

/// How entries of the optimizer's state are named in a checkpoint.
enum class OptimizerForm {
  kByIndex,  ///< optimizer_state.safetensors: "state/0/exp_avg", groups list indices
  kByFqn,    ///< shards: "state.<fqn>.exp_avg", groups list FQNs
};

/// Reads training_state/ of a checkpoint. Bytes that are read are verified against its manifest, when it has one.
class TrainingStateReader {
 public:
  /// Throws: Error{kCheckpoint} when `checkpoint`/training_state is not a directory, or the manifest is damaged.
  explicit TrainingStateReader(const std::filesystem::path& checkpoint);
  ~TrainingStateReader();

  [[nodiscard]] TrainingStep training_step() const;
  [[nodiscard]] RngState rng_state() const;
  /// The generator states of all ranks; none in a checkpoint of LeRobot (Python).
  [[nodiscard]] std::optional<TorchRngStates> rank_rng_states() const;
  /// Content of a JSON file such as scheduler_state.json. Throws: Error{kCheckpoint} when there is none.
  [[nodiscard]] Json json(std::string_view file) const;
  [[nodiscard]] bool has(std::string_view file) const;
  [[nodiscard]] std::filesystem::path path(std::string_view file) const;

  /// Refuses a checkpoint that a sharded run of LeRobot 0.6.x or older wrote.
  ///
  /// Throws: Error{kCheckpoint} naming the missing optimizer_0 when this run is sharded, there are no optimizer shards
  ///         and training_step.json has no `parallelism`.
  void require_resumable(bool run_is_sharded) const;

  /// The form of the state of the optimizer called `name` (empty: the only one).
  /// Throws: Error{kCheckpoint} when there is none.
  [[nodiscard]] OptimizerForm optimizer_form(std::string_view name = {}) const;
  [[nodiscard]] Json optimizer_groups(std::string_view name = {}) const;
  [[nodiscard]] bool has_optimizer_entry(const std::string& entry, std::string_view name = {}) const;
  /// Fills every entry, whole or by rows. Throws: Error{kCheckpoint} naming file and entry.
  void load_optimizer_state(const mesh::StateDict& to, std::string_view name = {}) const;

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

}  // namespace lerobot::checkpoint
