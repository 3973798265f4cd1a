#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lerobot/processors/normalizer.hpp"
#include "lerobot/processors/step.hpp"

namespace lerobot::processors {

/// Changes to a stored step: keys that replace those of its config, statistics that replace its state file.
struct StepOverride {
  Json config = Json::object();
  std::optional<Stats> stats;  ///< empty ones count as not given
};
/// By registry name; each must be in the file.
using Overrides = std::map<std::string, StepOverride>;

/// Steps that run one after another, in the files and with the names of LeRobot (Python).
///
/// Typical use: `auto pre = Pipeline::load(folder, "policy_preprocessor", overrides); policy->forward(pre(batch));`
class Pipeline {
 public:
  Pipeline(std::string name, std::vector<std::unique_ptr<Step>> steps);

  /// The batch after all steps. Keys that are no observation, action, reward, end, index, time or padding are dropped,
  /// as LeRobot (Python) drops them.
  [[nodiscard]] Batch operator()(Batch batch) const;
  /// The same for an action alone, for a post-processor.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& action) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Step>>& steps() const { return steps_; }
  /// The step of this registry name, or null.
  [[nodiscard]] Step* find(std::string_view registry_name) const;

  /// Writes `<name>.json` and `<name>_step_<i>_<registry name>.safetensors` for steps with a state. Gives the names of
  /// the files, in that order. Not collective. Throws: Error{kCheckpoint}.
  std::vector<std::string> save(const std::filesystem::path& directory) const;

  /// Reads `<directory>/<name>.json` and its state files.
  ///
  /// Throws: Error{kCheckpoint} when a file is missing or damaged, a step unknown; Error{kConfig} when an override
  /// names a step that is not in the file, or a setting is wrong.
  [[nodiscard]] static Pipeline load(const std::filesystem::path& directory, const std::string& name,
                                     const Overrides& overrides = {}, const StepRegistry& registry = built_in_steps());

 private:
  std::string name_;
  std::vector<std::unique_ptr<Step>> steps_;
};

inline constexpr const char* kPreProcessor = "policy_preprocessor";
inline constexpr const char* kPostProcessor = "policy_postprocessor";

/// What the pipelines of ACT and Diffusion are made from.
struct PipelineOptions {
  std::vector<PolicyFeature> input_features, output_features;
  NormalizationMap norm_map;
  Stats stats;
  std::string device = "cpu";
  std::vector<std::pair<std::string, std::string>> rename_map;
};

/// Rename, add a batch dimension, move to the device, normalise inputs and outputs.
[[nodiscard]] Pipeline make_pre_processor(const PipelineOptions& options);
/// Take the normalisation of the outputs back, move to CPU.
[[nodiscard]] Pipeline make_post_processor(const PipelineOptions& options);

/// The overrides with which training reads stored pipelines: device, rename map, and the policy's features and norm
/// map; with `stats` also those of the dataset (fine-tuning), without them the stored ones stay (resume).
[[nodiscard]] Overrides pre_processor_overrides(const PipelineOptions& options, bool with_stats);
[[nodiscard]] Overrides post_processor_overrides(const PipelineOptions& options, bool with_stats);

}  // namespace lerobot::processors
