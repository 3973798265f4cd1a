#include "lerobot/processors/normalizer.hpp"

#include <ATen/ops/where.h>

#include <algorithm>
#include <utility>

#include "lerobot/core/error.hpp"

namespace lerobot::processors {
namespace {

std::string_view name_of(Normalizer::Direction direction) {
  return direction == Normalizer::Direction::kNormalize ? "normalizer_processor" : "unnormalizer_processor";
}

NormalizerOptions parse_options(Normalizer::Direction direction, const StepSource& source) {
  const std::string step(name_of(direction));
  NormalizerOptions options{.features = {}, .norm_map = {}, .stats = source.stats};
  for (const auto& [key, value] : source.config.items()) {
    if (key == "eps") {
      if (!value.is_number()) fail(ErrorKind::kConfig, "{}.eps: got {}; expected a number.", step, value.dump());
      options.eps = value.get<double>();
    } else if (key == "features") {
      options.features = parse_features(value, step + ".features");
    } else if (key == "norm_map") {
      options.norm_map = parse_normalization_map(value, step + ".norm_map");
    } else if (key == "normalize_observation_keys") {
      if (!value.is_null() && !value.is_array())
        fail(ErrorKind::kConfig, "{}.{}: got {}; expected a list of names.", step, key, value.dump());
      if (!value.is_null()) options.normalize_observation_keys = value.get<std::vector<std::string>>();
    } else {
      fail(ErrorKind::kConfig, "{}: unknown setting \"{}\". Remove it or correct its name.", step, key);
    }
  }
  return options;
}

struct Pair {
  const char *first, *second;
};
Pair needed(NormalizationMode mode) {
  switch (mode) {
    case NormalizationMode::kMeanStd:
      return {"mean", "std"};
    case NormalizationMode::kMinMax:
      return {"min", "max"};
    case NormalizationMode::kQuantiles:
      return {"q01", "q99"};
    case NormalizationMode::kQuantile10:
      return {"q10", "q90"};
    case NormalizationMode::kIdentity:
      break;
  }
  return {nullptr, nullptr};
}

}  // namespace

Normalizer::Normalizer(Direction direction, NormalizerOptions options)
    : direction_(direction), options_(std::move(options)) {
  if (options_.normalize_observation_keys) std::ranges::sort(*options_.normalize_observation_keys);
  prepare();
}
Normalizer::Normalizer(Direction direction, const StepSource& source)
    : Normalizer(direction, parse_options(direction, source)) {}

void Normalizer::prepare() {
  for (auto& [feature, entries] : options_.stats)
    for (auto& [name, value] : entries) value = value.to(at::kCPU, at::kFloat).contiguous();
  for (const PolicyFeature& feature : options_.features) {
    const auto found = options_.stats.find(feature.name);
    if (found == options_.stats.end()) continue;
    // Statistics of images are per channel, in a shape that broadcasts over height and width.
    if (feature.type == FeatureType::kVisual)
      for (auto& [name, value] : found->second)
        if (value.dim() == 1) value = value.view({-1, 1, 1});

    const NormalizationMode mode = mode_of(options_.norm_map, feature.type);
    if (mode == NormalizationMode::kIdentity) continue;
    const auto& keys = options_.normalize_observation_keys;
    if (keys && feature.type != FeatureType::kAction && !std::ranges::binary_search(*keys, feature.name)) continue;
    const Pair pair = needed(mode);
    const auto& entries = found->second;
    const auto first = entries.find(pair.first), second = entries.find(pair.second);
    if (first == entries.end() || second == entries.end())
      fail(ErrorKind::kConfig,
           "{}: {} normalization of \"{}\" needs the statistics {} and {}, and has only {} of them. Compute them for "
           "the "
           "dataset, or choose another mode in --policy.normalization_mapping.",
           name_of(direction_), to_string(mode), feature.name, pair.first, pair.second,
           static_cast<int>(first != entries.end()) + static_cast<int>(second != entries.end()));
    Transform transform;
    if (mode == NormalizationMode::kMeanStd) {
      transform.shift = first->second;
      transform.scale = second->second + options_.eps;
      transform.scale_back = second->second;
    } else {
      transform.to_unit_range = true;
      const at::Tensor range = second->second - first->second;
      transform.shift = first->second;
      transform.scale = at::where(range == 0, at::full_like(range, options_.eps), range);
      transform.scale_back = transform.scale;
    }
    transforms_.emplace(feature.name, std::move(transform));
  }
}

std::string_view Normalizer::registry_name() const { return name_of(direction_); }

Json Normalizer::config() const {
  Json config = Json::object();
  config["eps"] = options_.eps;
  config["features"] = to_json(options_.features);
  config["norm_map"] = to_json(options_.norm_map);
  if (options_.normalize_observation_keys) config["normalize_observation_keys"] = *options_.normalize_observation_keys;
  return config;
}

TensorMap Normalizer::state() const {
  TensorMap state;
  for (const auto& [feature, entries] : options_.stats)
    for (const auto& [name, value] : entries) state.emplace(fmt::format("{}.{}", feature, name), value);
  return state;
}

at::Tensor Normalizer::transform(Transform& t, const at::Tensor& x) const {
  const at::ScalarType type = x.is_floating_point() ? x.scalar_type() : at::kFloat;
  if (t.shift.device() != x.device() || t.shift.scalar_type() != type) {  // once: batches keep device and type
    t.shift = t.shift.to(x.device(), type);
    t.scale = t.scale.to(x.device(), type);
    t.scale_back = t.scale_back.to(x.device(), type);
  }
  // Subtract, then divide: multiplying by 1/scale instead is off by half a unit where a constant has a scale of eps.
  if (direction_ == Direction::kNormalize) {
    at::Tensor y = x - t.shift;
    if (t.to_unit_range) return y.mul_(2).div_(t.scale).sub_(1);
    return y.div_(t.scale);
  }
  if (t.to_unit_range) return (x + 1).div_(2).mul_(t.scale_back).add_(t.shift);
  return (x * t.scale_back).add_(t.shift);
}

at::Tensor Normalizer::apply(const std::string& feature, const at::Tensor& x) {
  const auto found = transforms_.find(feature);
  return found == transforms_.end() ? x : transform(found->second, x);
}

void Normalizer::apply(Batch& batch) {
  for (auto& [feature, t] : transforms_) {
    const auto found = batch.tensors.find(feature);
    if (found != batch.tensors.end()) found->second = transform(t, found->second);
  }
}

}  // namespace lerobot::processors
