#include "lerobot/processors/feature.hpp"

#include <array>
#include <utility>

#include "lerobot/core/error.hpp"

namespace lerobot::processors {
namespace {

constexpr std::array<std::pair<FeatureType, std::string_view>, 6> kTypes{{{FeatureType::kState, "STATE"},
                                                                          {FeatureType::kVisual, "VISUAL"},
                                                                          {FeatureType::kEnv, "ENV"},
                                                                          {FeatureType::kAction, "ACTION"},
                                                                          {FeatureType::kReward, "REWARD"},
                                                                          {FeatureType::kLanguage, "LANGUAGE"}}};
constexpr std::array<std::pair<NormalizationMode, std::string_view>, 5> kModes{
    {{NormalizationMode::kMinMax, "MIN_MAX"},
     {NormalizationMode::kMeanStd, "MEAN_STD"},
     {NormalizationMode::kIdentity, "IDENTITY"},
     {NormalizationMode::kQuantiles, "QUANTILES"},
     {NormalizationMode::kQuantile10, "QUANTILE10"}}};

template <typename Table>
auto parse(const Table& table, std::string_view name, std::string_view where) {
  std::string known;
  for (const auto& [value, text] : table) {
    if (text == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
  }
  fail(ErrorKind::kConfig, "{}: got \"{}\"; expected one of {}.", where, name, known);
}

template <typename Table, typename T>
std::string_view name_of(const Table& table, T wanted) {
  for (const auto& [value, text] : table)
    if (value == wanted) return text;
  fail(ErrorKind::kInternal, "processors: a value {} outside its enumeration.", static_cast<int>(wanted));
}

}  // namespace

std::string_view to_string(FeatureType type) { return name_of(kTypes, type); }
std::string_view to_string(NormalizationMode mode) { return name_of(kModes, mode); }
FeatureType parse_feature_type(std::string_view name, std::string_view where) { return parse(kTypes, name, where); }
NormalizationMode parse_normalization_mode(std::string_view name, std::string_view where) {
  return parse(kModes, name, where);
}

std::vector<PolicyFeature> parse_features(const Json& features, std::string_view where) {
  std::vector<PolicyFeature> result;
  if (features.is_null()) return result;
  if (!features.is_object()) fail(ErrorKind::kConfig, "{}: got {}; expected an object.", where, features.dump());
  for (const auto& [name, feature] : features.items()) {
    const std::string at = fmt::format("{}.{}", where, name);
    if (!feature.is_object() || !feature.contains("type") || !feature.contains("shape") ||
        !feature["type"].is_string() || !feature["shape"].is_array())
      fail(ErrorKind::kConfig, "{}: got {}; expected {{\"type\": …, \"shape\": [...]}}.", at, feature.dump());
    PolicyFeature parsed{.name = name, .type = parse_feature_type(feature["type"].get<std::string>(), at), .shape = {}};
    for (const Json& size : feature["shape"]) {
      if (!size.is_number_integer() || size.get<std::int64_t>() < 0)
        fail(ErrorKind::kConfig, "{}: shape {}; expected sizes of 0 or more.", at, feature["shape"].dump());
      parsed.shape.push_back(size.get<std::int64_t>());
    }
    result.push_back(std::move(parsed));
  }
  return result;
}

Json to_json(const std::vector<PolicyFeature>& features) {
  Json result = Json::object();
  for (const PolicyFeature& feature : features) {
    Json entry = Json::object();
    entry["type"] = std::string(to_string(feature.type));
    entry["shape"] = feature.shape;
    result[feature.name] = std::move(entry);
  }
  return result;
}

NormalizationMap parse_normalization_map(const Json& map, std::string_view where) {
  if (!map.is_object()) fail(ErrorKind::kConfig, "{}: got {}; expected an object.", where, map.dump());
  NormalizationMap result;
  for (const auto& [type, mode] : map.items()) {
    if (!mode.is_string())
      fail(ErrorKind::kConfig, "{}.{}: got {}; expected the name of a mode.", where, type, mode.dump());
    result.emplace_back(parse_feature_type(type, where),
                        parse_normalization_mode(mode.get<std::string>(), fmt::format("{}.{}", where, type)));
  }
  return result;
}

Json to_json(const NormalizationMap& map) {
  Json result = Json::object();
  for (const auto& [type, mode] : map) result[std::string(to_string(type))] = std::string(to_string(mode));
  return result;
}

NormalizationMode mode_of(const NormalizationMap& map, FeatureType type) {
  for (const auto& [key, mode] : map)
    if (key == type) return mode;
  return NormalizationMode::kIdentity;
}

}  // namespace lerobot::processors
