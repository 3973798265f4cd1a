#pragma once

#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lerobot/config/built_features.hpp"
#include "lerobot/config/train_config.hpp"
#include "lerobot/policies/registry.hpp"

namespace lerobot::config {

/// Which accelerators this process can use.
struct Devices {
  int num_cuda = 0;
  bool mps = false;
  bool xpu = false;
};

/// The newest complete checkpoint of a run: the folder with the highest number under `output_dir`/checkpoints that
/// holds `pretrained_model/train_config.json` and `training_state/`. A checkpoint gets its name only when it is
/// complete.
[[nodiscard]] std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& output_dir);

/// What a configuration depends on besides its text. Ranks that are to agree on a configuration get equal values.
struct Environment {
  std::map<std::string, std::string, std::less<>> variables;  ///< of the process; see process_environment()
  std::time_t now = 0;                                        ///< rank 0's clock, for the generated name of output_dir
  std::int64_t world_size = 1;
  Devices devices;
  BuiltFeatures built;
  /// Names that `dataset.image_transforms.tfs.<name>.type` may have. Empty: not checked here.
  std::vector<std::string> image_transform_types;
  /// Where `--resume=auto` looks.
  std::function<std::optional<std::filesystem::path>(const std::filesystem::path& output_dir)> find_checkpoint =
      newest_checkpoint;
};

/// The variables and the clock of this process, in a world of one.
[[nodiscard]] Environment process_environment();

/// A setting that the command line changed on a resume; values as JSON text.
struct Override {
  std::string name;
  std::string old_value;
  std::string new_value;
};

struct ParsedTrain {
  std::string help;  ///< Not empty: --help was given. Print it and leave with 0; nothing else is filled.
  TrainConfig config;
  std::vector<std::string> warnings;  ///< for the log of rank 0, in order
  std::vector<Override> overrides;    ///< on a resume, for the log of rank 0
};

/// Reads the command line of `lerobot-train` and the files that it names, and checks the whole.
///
/// Sources, from weak to strong: defaults, the policy's training preset, the file of `--config_path` (or the checkpoint
/// that is resumed), flags. What comes back is complete: topology resolved, device chosen, optimizer and scheduler in
/// force, `output_dir` named (but not made). Nothing is written.
///
/// `arguments`: the words after the program's name.
/// Not collective: every rank calls it with the same arguments and environment and gets the same.
/// Throws: Error{kUsage} for the form of the command line; Error{kConfig} for all else, the first failing group of:
///   form, values, policy.path and resume, policy present, rename_map, output_dir, optimizer and scheduler, eval_steps,
///   repo_id, settings against one another, environment variables, topology.
[[nodiscard]] ParsedTrain parse_train(std::span<const std::string> arguments, const policies::Registry& registry,
                                      const Environment& environment);

/// The same from `main`'s arguments.
[[nodiscard]] ParsedTrain parse_train(int argc, const char* const* argv, const policies::Registry& registry,
                                      const Environment& environment);

}  // namespace lerobot::config
