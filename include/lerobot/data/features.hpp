#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lerobot/core/json.hpp"
#include "lerobot/data/info.hpp"

namespace lerobot::data {

/// What a policy gets and gives: name -> {"type": "VISUAL|ENV|STATE|ACTION", "shape": [...]}, in dataset order.
/// Cameras are channels first.
struct PolicyFeatures {
  Json inputs = Json::object(), outputs = Json::object();
};

/// Types the features of a dataset for a policy; what is neither observation nor action is left out.
/// Throws: Error{kDataset} for a camera that is not 3-D.
[[nodiscard]] PolicyFeatures policy_features(const DatasetInfo& info);

/// Throws Error{kConfig} listing both sides unless one's cameras are among the other's. With a rename map there is
/// nothing to compare.
void check_cameras(const Json& policy_inputs, const DatasetInfo& info,
                   const std::map<std::string, std::string>& rename_map);

/// Offsets in frames that a policy asks for.
struct DeltaIndices {
  std::optional<std::vector<std::int64_t>> observation = {}, action = {}, reward = {};
};

/// The windows of a dataset's features in seconds, index / fps. Keys are compared after renaming.
[[nodiscard]] std::map<std::string, std::vector<double>> delta_timestamps(
    const DatasetInfo& info, const DeltaIndices& deltas, const std::map<std::string, std::string>& rename_map = {});

}  // namespace lerobot::data
