#include "lerobot/data/features.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

bool starts_with(const std::string& text, std::string_view prefix) { return text.rfind(prefix, 0) == 0; }

}  // namespace

PolicyFeatures policy_features(const DatasetInfo& info) {
  PolicyFeatures out;
  for (const Feature& feature : info.features) {
    std::vector<std::int64_t> shape = feature.shape;
    const char* type = nullptr;
    if (feature.is_camera()) {
      if (shape.size() != 3)
        fail(ErrorKind::kDataset, "camera \"{}\" has {} dimensions; expected 3.", feature.name, shape.size());
      const bool channels_last = feature.names.is_array() && feature.names.size() == 3 &&
                                 (feature.names[2] == "channels" || feature.names[2] == "channel");
      if (channels_last) shape = {shape[2], shape[0], shape[1]};
      type = "VISUAL";
    } else if (feature.name == "observation.environment_state") {
      type = "ENV";
    } else if (starts_with(feature.name, "observation")) {
      type = "STATE";
    } else if (starts_with(feature.name, "action")) {
      type = "ACTION";
    } else {
      continue;
    }
    (std::string_view(type) == "ACTION" ? out.outputs : out.inputs)[feature.name] = {{"type", type}, {"shape", shape}};
  }
  return out;
}

void check_cameras(const Json& policy_inputs, const DatasetInfo& info,
                   const std::map<std::string, std::string>& rename_map) {
  if (!rename_map.empty()) return;
  std::set<std::string> policy, dataset;
  for (const auto& [name, feature] : policy_inputs.items())
    if (feature.is_object() && feature.value("type", Json()) == "VISUAL") policy.insert(name);
  for (const std::string& name : info.camera_keys()) dataset.insert(name);
  if (std::includes(policy.begin(), policy.end(), dataset.begin(), dataset.end()) ||
      std::includes(dataset.begin(), dataset.end(), policy.begin(), policy.end()))
    return;
  fail(ErrorKind::kConfig,
       "the policy's cameras are [{}], the dataset's are [{}]; one must hold the other. Map names with --rename_map.",
       fmt::join(policy, ", "), fmt::join(dataset, ", "));
}

std::map<std::string, std::vector<double>> delta_timestamps(const DatasetInfo& info, const DeltaIndices& deltas,
                                                            const std::map<std::string, std::string>& rename_map) {
  std::map<std::string, std::vector<double>> out;
  for (const Feature& feature : info.features) {
    const auto renamed = rename_map.find(feature.name);
    const std::string& name = renamed == rename_map.end() ? feature.name : renamed->second;
    const std::optional<std::vector<std::int64_t>>* wanted = nullptr;
    if (name == "next.reward")
      wanted = &deltas.reward;
    else if (name == "action")
      wanted = &deltas.action;
    else if (starts_with(name, "observation."))
      wanted = &deltas.observation;
    if (wanted == nullptr || !wanted->has_value()) continue;
    std::vector<double>& seconds = out[feature.name];
    for (const std::int64_t index : **wanted)
      seconds.push_back(static_cast<double>(index) / static_cast<double>(info.fps));
  }
  return out;
}

}  // namespace lerobot::data
