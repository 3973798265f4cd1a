#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot::processors {

/// What a feature is to a policy.
enum class FeatureType { kState, kVisual, kEnv, kAction, kReward, kLanguage };

/// How values of a type of feature are brought to a common range.
enum class NormalizationMode { kIdentity, kMeanStd, kMinMax, kQuantiles, kQuantile10 };

/// "STATE", "VISUAL", …, as files write them.
[[nodiscard]] std::string_view to_string(FeatureType type);
[[nodiscard]] std::string_view to_string(NormalizationMode mode);
/// The reverse. `where` opens the message. Throws: Error{kConfig} that lists the known names.
[[nodiscard]] FeatureType parse_feature_type(std::string_view name, std::string_view where);
[[nodiscard]] NormalizationMode parse_normalization_mode(std::string_view name, std::string_view where);

/// One input or output of a policy: its name in a batch, and its shape without the batch dimension (images C, H, W).
struct PolicyFeature {
  std::string name;
  FeatureType type = FeatureType::kState;
  std::vector<std::int64_t> shape;
  bool operator==(const PolicyFeature&) const = default;
};

/// Reads {"name": {"type": "STATE", "shape": [2]}, …} in its order. Throws: Error{kConfig}.
[[nodiscard]] std::vector<PolicyFeature> parse_features(const Json& features, std::string_view where);
[[nodiscard]] Json to_json(const std::vector<PolicyFeature>& features);

/// Feature type -> mode, in the order of the file. A type that is missing is left as it is.
using NormalizationMap = std::vector<std::pair<FeatureType, NormalizationMode>>;
[[nodiscard]] NormalizationMap parse_normalization_map(const Json& map, std::string_view where);
[[nodiscard]] Json to_json(const NormalizationMap& map);
[[nodiscard]] NormalizationMode mode_of(const NormalizationMap& map, FeatureType type);

}  // namespace lerobot::processors
