#include <array>
#include <optional>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/processors/normalizer.hpp"
#include "lerobot/processors/step.hpp"

namespace lerobot::processors {
namespace {

/// The value of an optional key of a step's config, checked by `is`; refuses keys outside `known`.
void check_keys(std::string_view step, const Json& config, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : config.items()) {
    bool found = false;
    for (const std::string_view name : known) found = found || name == key;
    if (!found) fail(ErrorKind::kConfig, "{}: unknown setting \"{}\". Remove it or correct its name.", step, key);
  }
}

std::vector<std::pair<std::string, std::string>> parse_rename_map(const StepSource& source) {
  check_keys("rename_observations_processor", source.config, {"rename_map"});
  std::vector<std::pair<std::string, std::string>> result;
  if (!source.config.contains("rename_map")) return result;
  const Json& map = source.config["rename_map"];
  if (!map.is_object())
    fail(ErrorKind::kConfig, "rename_observations_processor.rename_map: got {}; expected an object.", map.dump());
  for (const auto& [from, to] : map.items()) {
    if (!to.is_string())
      fail(ErrorKind::kConfig, "rename_observations_processor.rename_map.{}: got {}; expected a name.", from,
           to.dump());
    result.emplace_back(from, to.get<std::string>());
  }
  return result;
}

std::string text_or(const Json& config, const char* key, std::string fallback) {
  if (!config.contains(key) || config[key].is_null()) return fallback;
  if (!config[key].is_string())
    fail(ErrorKind::kConfig, "device_processor.{}: got {}; expected text.", key, config[key].dump());
  return config[key].get<std::string>();
}

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 7> kFloatTypes{{{"float16", at::kHalf},
                                                                                  {"float32", at::kFloat},
                                                                                  {"float64", at::kDouble},
                                                                                  {"bfloat16", at::kBFloat16},
                                                                                  {"half", at::kHalf},
                                                                                  {"float", at::kFloat},
                                                                                  {"double", at::kDouble}}};

}  // namespace

StepRegistry built_in_steps() {
  const auto normalizer = [](Normalizer::Direction direction) -> StepFactory {
    return [direction](const StepSource& source) { return std::make_unique<Normalizer>(direction, source); };
  };
  return {{"rename_observations_processor",
           [](const StepSource& source) { return std::make_unique<RenameObservations>(source); }},
          {"to_batch_processor", [](const StepSource& source) { return std::make_unique<ToBatch>(source); }},
          {"device_processor", [](const StepSource& source) { return std::make_unique<ToDevice>(source); }},
          {"normalizer_processor", normalizer(Normalizer::Direction::kNormalize)},
          {"unnormalizer_processor", normalizer(Normalizer::Direction::kUnnormalize)}};
}

RenameObservations::RenameObservations(std::vector<std::pair<std::string, std::string>> rename_map)
    : rename_map_(std::move(rename_map)) {}
RenameObservations::RenameObservations(const StepSource& source) : RenameObservations(parse_rename_map(source)) {}

Json RenameObservations::config() const {
  Json map = Json::object();
  for (const auto& [from, to] : rename_map_) map[from] = to;
  Json config = Json::object();
  config["rename_map"] = std::move(map);
  return config;
}

void RenameObservations::apply(Batch& batch) {
  if (rename_map_.empty()) return;
  std::map<std::string, at::Tensor> renamed;
  for (auto& [name, tensor] : batch.tensors) {
    std::string target = name;
    if (name.starts_with("observation.")) {
      for (const auto& [from, to] : rename_map_)
        for (const std::string_view suffix : {"", "_is_pad", "_padding_mask"})
          if (name.size() == from.size() + suffix.size() && name.starts_with(from) && name.ends_with(suffix))
            target = to + std::string(suffix);
    }
    renamed.insert_or_assign(std::move(target), std::move(tensor));
  }
  batch.tensors = std::move(renamed);
}

ToBatch::ToBatch(const StepSource& source) { check_keys("to_batch_processor", source.config, {}); }

void ToBatch::apply(Batch& batch) {
  for (auto& [name, tensor] : batch.tensors) {
    const std::int64_t dims = tensor.dim();
    const bool is_image = name == "observation.image" || name.starts_with("observation.images.");
    const bool is_vector = name == "action" || name == "observation.state" || name == "observation.environment_state";
    const bool is_index = name == "index" || name == "task_index";
    if ((is_vector && dims == 1) || (is_image && dims == 3) || (is_index && dims == 0)) tensor = tensor.unsqueeze(0);
  }
}

ToDevice::ToDevice(std::string device, std::string float_dtype)
    : device_name_(std::move(device)), float_dtype_name_(std::move(float_dtype)) {
  try {
    device_ = at::Device(device_name_);
  } catch (const c10::Error&) {
    fail(ErrorKind::kConfig, "device_processor.device: got \"{}\"; expected a device such as cpu, cuda or cuda:1.",
         device_name_);
  }
  if (float_dtype_name_.empty()) return;
  for (const auto& [name, type] : kFloatTypes)
    if (name == float_dtype_name_) float_dtype_ = type;
  if (!float_dtype_)
    fail(ErrorKind::kConfig,
         "device_processor.float_dtype: got \"{}\"; expected float16, float32, float64, bfloat16, half, float or "
         "double.",
         float_dtype_name_);
}

ToDevice::ToDevice(const StepSource& source)
    : ToDevice(text_or(source.config, "device", "cpu"), text_or(source.config, "float_dtype", "")) {
  check_keys("device_processor", source.config, {"device", "float_dtype"});
}

Json ToDevice::config() const {
  Json config = Json::object();
  config["device"] = device_name_;
  config["float_dtype"] = float_dtype_name_.empty() ? Json(nullptr) : Json(float_dtype_name_);
  return config;
}

void ToDevice::apply(Batch& batch) {
  for (auto& [name, tensor] : batch.tensors) {
    const bool stays = tensor.is_cuda() && device_.is_cuda();
    const at::Device target = stays ? tensor.device() : device_;
    const at::ScalarType type = float_dtype_ && tensor.is_floating_point() ? *float_dtype_ : tensor.scalar_type();
    if (tensor.device() != target || tensor.scalar_type() != type)
      tensor = tensor.to(target, type, /*non_blocking=*/target.is_cuda());
  }
}

}  // namespace lerobot::processors
