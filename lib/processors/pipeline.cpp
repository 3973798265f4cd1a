#include "lerobot/processors/pipeline.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/json.hpp"

namespace lerobot::processors {
namespace {

/// Lower case, with everything outside [a-z0-9_] replaced by '_': the part of a name that goes into file names.
std::string file_part(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool keep = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '_';
    result += keep ? lower : '_';
  }
  return result;
}

std::string state_file(std::string_view pipeline, std::size_t index, const Step& step) {
  return fmt::format("{}_step_{}_{}.safetensors", file_part(pipeline), index, step.registry_name());
}

/// Keys that reach a policy: observations, action, and what LeRobot (Python) calls complementary data.
bool is_kept(std::string_view key) {
  constexpr std::array<std::string_view, 9> kKept{"action", "next.reward", "next.done",     "next.truncated", "info",
                                                  "index",  "task_index",  "episode_index", "timestamp"};
  return key.starts_with("observation.") || key.starts_with("language") ||
         key.find("_is_pad") != std::string_view::npos || std::find(kKept.begin(), kKept.end(), key) != kKept.end();
}

/// Entries "<feature>.<statistic>" of a state file, split at the last dot.
Stats read_stats(const std::filesystem::path& path) {
  Stats stats;
  for (auto& [key, tensor] : read_tensor_file(path)) {
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos)
      fail(ErrorKind::kCheckpoint,
           "{}: tensor \"{}\" is not named <feature>.<statistic>; the file is no normalizer state.", path.string(),
           key);
    stats[key.substr(0, dot)][key.substr(dot + 1)] = std::move(tensor);
  }
  return stats;
}

std::unique_ptr<Step> load_step(const std::filesystem::path& file, const Json& stored, const Overrides& overrides,
                                const StepRegistry& registry) {
  const auto text = [&](const char* key) {
    if (!stored.contains(key)) return std::string();
    if (!stored[key].is_string())
      fail(ErrorKind::kCheckpoint, "{}: \"{}\" of a step is {}; expected text.", file.string(), key,
           stored[key].dump());
    return stored[key].get<std::string>();
  };
  const std::string name = text("registry_name");
  if (name.empty())
    fail(ErrorKind::kCheckpoint,
         "{}: a step has {}; expected a \"registry_name\" (steps of Python classes can't run here).", file.string(),
         stored.contains("class") ? fmt::format("class \"{}\"", text("class")) : stored.dump());
  const auto factory = registry.find(name);
  if (factory == registry.end()) {
    std::string known;
    for (const auto& [key, value] : registry) known += (known.empty() ? "" : ", ") + key;
    fail(ErrorKind::kCheckpoint, "{}: unknown step \"{}\"; known are {}.", file.string(), name, known);
  }

  StepSource source;
  if (stored.contains("config")) source.config = stored["config"];
  if (!source.config.is_object())
    fail(ErrorKind::kCheckpoint, "{}: \"config\" of {} is {}; expected an object.", file.string(), name,
         source.config.dump());
  const auto override = overrides.find(name);
  if (override != overrides.end()) source.config.update(override->second.config);
  if (override != overrides.end() && override->second.stats && !override->second.stats->empty()) {
    source.stats = *override->second.stats;
  } else if (const std::string state = text("state_file"); !state.empty()) {
    const std::filesystem::path path = file.parent_path() / state;
    if (std::filesystem::path(state).filename() != state)
      fail(ErrorKind::kCheckpoint, "{}: state_file \"{}\" of {} is not a bare file name; refused.", file.string(),
           state, name);
    if (!std::filesystem::exists(path))
      fail(ErrorKind::kCheckpoint, "{}: the state file \"{}\" of {} was not found in {}. Copy it there.", file.string(),
           state, name, file.parent_path().string());
    source.stats = read_stats(path);
  }
  return factory->second(source);
}

}  // namespace

Pipeline::Pipeline(std::string name, std::vector<std::unique_ptr<Step>> steps)
    : name_(std::move(name)), steps_(std::move(steps)) {}

Batch Pipeline::operator()(Batch batch) const {
  std::erase_if(batch.tensors, [](const auto& entry) { return !is_kept(entry.first); });
  for (const auto& step : steps_) step->apply(batch);
  return batch;
}

at::Tensor Pipeline::operator()(const at::Tensor& action) const {
  Batch batch;
  batch.tensors.emplace("action", action);
  return (*this)(std::move(batch)).tensors.at("action");
}

Step* Pipeline::find(std::string_view registry_name) const {
  for (const auto& step : steps_)
    if (step->registry_name() == registry_name) return step.get();
  return nullptr;
}

std::vector<std::string> Pipeline::save(const std::filesystem::path& directory) const {
  std::vector<std::string> files{file_part(name_) + ".json"};
  Json steps = Json::array();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Json entry = Json::object();
    entry["registry_name"] = std::string(steps_[i]->registry_name());
    entry["config"] = steps_[i]->config();
    if (const TensorMap state = steps_[i]->state(); !state.empty()) {
      files.push_back(state_file(name_, i, *steps_[i]));
      write_tensor_file(directory / files.back(), state);
      entry["state_file"] = files.back();
    }
    steps.push_back(std::move(entry));
  }
  Json pipeline = Json::object();
  pipeline["name"] = name_;
  pipeline["steps"] = std::move(steps);
  formats::write_file_atomically(directory / files[0], formats::dump_python(pipeline, 2, /*ascii=*/true));
  return files;
}

Pipeline Pipeline::load(const std::filesystem::path& directory, const std::string& name, const Overrides& overrides,
                        const StepRegistry& registry) {
  const std::filesystem::path file = directory / (file_part(name) + ".json");
  if (!std::filesystem::exists(file))
    fail(ErrorKind::kCheckpoint, "{}: not found; a policy's folder holds its pipelines. Check --policy.path.",
         file.string());
  const Json stored = formats::read_json(file, ErrorKind::kCheckpoint);
  if (!stored.is_object() || !stored.contains("steps") || !stored["steps"].is_array())
    fail(ErrorKind::kCheckpoint, "{}: expected an object with a list \"steps\".", file.string());
  std::vector<std::unique_ptr<Step>> steps;
  for (const Json& entry : stored["steps"]) {
    if (!entry.is_object())
      fail(ErrorKind::kCheckpoint, "{}: a step is {}; expected an object.", file.string(), entry.dump());
    steps.push_back(load_step(file, entry, overrides, registry));
  }
  std::string stored_name = name;
  if (stored.contains("name") && stored["name"].is_string()) stored_name = stored["name"].get<std::string>();
  Pipeline pipeline(std::move(stored_name), std::move(steps));
  for (const auto& [step, override] : overrides) {
    if (pipeline.find(step) != nullptr) continue;
    std::string known;
    for (const auto& present : pipeline.steps())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", present->registry_name());
    fail(ErrorKind::kConfig, "{}: an override names the step \"{}\", which the file does not have; it has {}.",
         file.string(), step, known);
  }
  return pipeline;
}

namespace {

std::vector<PolicyFeature> all_features(const PipelineOptions& options) {
  std::vector<PolicyFeature> features = options.input_features;
  features.insert(features.end(), options.output_features.begin(), options.output_features.end());
  return features;
}

StepOverride normalizer_override(const PipelineOptions& options, const std::vector<PolicyFeature>& features,
                                 bool with_stats) {
  StepOverride result;
  result.config["features"] = to_json(features);
  result.config["norm_map"] = to_json(options.norm_map);
  if (with_stats) result.stats = options.stats;
  return result;
}

}  // namespace

Pipeline make_pre_processor(const PipelineOptions& options) {
  std::vector<std::unique_ptr<Step>> steps;
  steps.push_back(std::make_unique<RenameObservations>(options.rename_map));
  steps.push_back(std::make_unique<ToBatch>());
  steps.push_back(std::make_unique<ToDevice>(options.device));
  steps.push_back(std::make_unique<Normalizer>(
      Normalizer::Direction::kNormalize,
      NormalizerOptions{.features = all_features(options), .norm_map = options.norm_map, .stats = options.stats}));
  return Pipeline(kPreProcessor, std::move(steps));
}

Pipeline make_post_processor(const PipelineOptions& options) {
  std::vector<std::unique_ptr<Step>> steps;
  steps.push_back(std::make_unique<Normalizer>(
      Normalizer::Direction::kUnnormalize,
      NormalizerOptions{.features = options.output_features, .norm_map = options.norm_map, .stats = options.stats}));
  steps.push_back(std::make_unique<ToDevice>("cpu"));
  return Pipeline(kPostProcessor, std::move(steps));
}

Overrides pre_processor_overrides(const PipelineOptions& options, bool with_stats) {
  Overrides overrides;
  overrides["device_processor"].config["device"] = options.device;
  Json map = Json::object();
  for (const auto& [from, to] : options.rename_map) map[from] = to;
  overrides["rename_observations_processor"].config["rename_map"] = std::move(map);
  overrides["normalizer_processor"] = normalizer_override(options, all_features(options), with_stats);
  return overrides;
}

Overrides post_processor_overrides(const PipelineOptions& options, bool with_stats) {
  Overrides overrides;
  overrides["unnormalizer_processor"] = normalizer_override(options, options.output_features, with_stats);
  return overrides;
}

}  // namespace lerobot::processors
