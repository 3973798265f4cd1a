#include "lerobot/data/image_transforms.hpp"

#include <algorithm>
#include <numeric>

#include "data/transform.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

const TransformTable& known_transforms() {
  static const TransformTable table = [] {
    TransformTable built;
    add_color_transforms(built);
    add_geometry_transforms(built);
    add_camera_transforms(built);
    return built;
  }();
  return table;
}

std::unique_ptr<Transform> build(const ImageTransformConfig& config) {
  const std::string where = fmt::format("dataset.image_transforms.tfs.{} ({})", config.name, config.type);
  const auto it = known_transforms().find(config.type);
  if (it == known_transforms().end()) {
    std::string names;
    for (const std::string& name : image_transform_types()) names += (names.empty() ? "" : ", ") + name;
    fail(ErrorKind::kConfig, "dataset.image_transforms.tfs.{}: type \"{}\" is not valid. Known types: {}.", config.name,
         config.type, names);
  }
  Arguments arguments(where, config.kwargs);
  std::unique_ptr<Transform> transform = it->second(arguments);
  arguments.done();
  return transform;
}

/// FNV-1a: a camera's name as a number that does not change between builds.
std::uint64_t hash_name(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

ImageTransformsConfig parse_image_transforms(const Json& json) {
  const std::string where = "dataset.image_transforms";
  ImageTransformsConfig config;
  if (!json.is_object()) fail(ErrorKind::kConfig, "{}: got {}; expected an object.", where, json.dump());
  for (const auto& [key, value] : json.items()) {
    if (key == "enable" && value.is_boolean())
      config.enable = value.get<bool>();
    else if (key == "random_order" && value.is_boolean())
      config.random_order = value.get<bool>();
    else if (key == "max_num_transforms" && value.is_number_integer())
      config.max_num_transforms = value.get<std::int64_t>();
    else if (key == "tfs" && value.is_object()) {
      for (const auto& [name, entry] : value.items()) {
        const bool ok = entry.is_object() && entry.value("weight", Json(1.0)).is_number() &&
                        entry.value("type", Json("")).is_string();
        if (!ok)
          fail(ErrorKind::kConfig, "{}.tfs.{}: got {}; expected weight, type and kwargs.", where, name, entry.dump());
        config.tfs.push_back({name, entry.value("weight", 1.0), entry.value("type", std::string("Identity")),
                              entry.value("kwargs", Json::object())});
      }
    } else {
      fail(ErrorKind::kConfig,
           "{}.{}: got {}; expected enable, max_num_transforms, random_order or tfs of the right type.", where, key,
           value.dump());
    }
  }
  return config;
}

std::vector<std::string> image_transform_types() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : known_transforms()) names.push_back(name);
  return names;
}

ImageTransforms::ImageTransforms(const ImageTransformsConfig& config) : random_order_(config.random_order) {
  for (const ImageTransformConfig& entry : config.tfs) {
    std::unique_ptr<Transform> transform = build(entry);  // a wrong entry is refused even when it is never drawn
    if (!(entry.weight > 0)) continue;
    transforms_.push_back(std::move(transform));
    weights_.push_back(entry.weight);
  }
  if (config.enable && config.max_num_transforms > 0)
    num_applied_ = std::min(transforms_.size(), static_cast<std::size_t>(config.max_num_transforms));
}

ImageTransforms::~ImageTransforms() = default;

at::Tensor ImageTransforms::apply(const at::Tensor& image, std::uint64_t seed, const std::string& camera) const {
  Draws draws(seed ^ hash_name(camera));
  std::vector<double> weights = weights_;
  std::vector<std::size_t> drawn;
  while (drawn.size() < num_applied_) {
    double at = draws.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t pick = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;  // drawn already
      pick = i;
      at -= weights[i];
      if (at < 0) break;
    }
    weights[pick] = 0;
    drawn.push_back(pick);
  }
  if (!random_order_) std::sort(drawn.begin(), drawn.end());
  at::Tensor out = image;
  for (const std::size_t i : drawn) out = transforms_[i]->apply(out, draws);
  return out.contiguous();
}

}  // namespace lerobot::data
