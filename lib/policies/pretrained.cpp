#include "lerobot/policies/pretrained.hpp"

#include <torch/cuda.h>
#include <torch/mps.h>
#include <torch/xpu.h>

#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/json.hpp"

namespace lerobot::policies {
namespace {

bool is_here(at::DeviceType type) {
  switch (type) {
    case at::kCPU:
      return true;
    case at::kCUDA:
      return torch::cuda::is_available();
    case at::kMPS:
      return torch::mps::is_available();
    case at::kXPU:
      return torch::xpu::is_available();
    default:
      return false;
  }
}

/// The device of a stored config, or the best one here.
at::Device choose_device(const Json& stored, std::vector<std::string>& warnings) {
  const std::string wanted = stored.is_string() ? stored.get<std::string>() : "";
  if (!wanted.empty()) {
    at::Device device(at::kCPU);
    try {
      device = at::Device(wanted);
    } catch (const c10::Error&) {
      fail(ErrorKind::kConfig, "policy.device: got \"{}\"; expected cpu, cuda, cuda:N, mps or xpu.", wanted);
    }
    if (is_here(device.type())) return device;
  }
  for (const at::DeviceType type : {at::kCUDA, at::kMPS, at::kXPU, at::kCPU}) {
    if (!is_here(type)) continue;
    const at::Device device(type);
    if (!wanted.empty())
      warnings.push_back(fmt::format("Device '{}' is not available. Switching to '{}'.", wanted, device.str()));
    return device;
  }
  return at::Device(at::kCPU);
}

/// The stored settings with defaults for what is missing, in the order of the declaration.
Json complete(const Json& stored, const PolicyType& type, const std::filesystem::path& file) {
  Json config = Json::object();
  config["type"] = type.name;
  for (const auto* fields : {&base_policy_fields(), &type.fields})
    for (const Field& field : *fields)
      config[field.name] = stored.contains(field.name) ? stored[field.name] : field.default_value;
  for (const auto& [key, value] : stored.items())
    if (!config.contains(key))
      fail(ErrorKind::kConfig, "{}: unknown setting \"{}\" for type {}. Remove it or correct its name.", file.string(),
           key, type.name);
  return config;
}

}  // namespace

Pretrained from_pretrained(const std::filesystem::path& directory, const Registry& registry, const Json& overrides,
                           Strictness strictness) {
  const std::filesystem::path file = directory / "config.json";
  if (!std::filesystem::exists(file))
    fail(ErrorKind::kCheckpoint, "policy: config.json not found in {}. Give a folder that holds a trained policy.",
         directory.string());
  Json stored = formats::read_json(file, ErrorKind::kCheckpoint);
  if (!stored.is_object() || !stored.contains("type") || !stored["type"].is_string())
    fail(ErrorKind::kCheckpoint, "{}: missing type; expected the name of a policy, such as \"act\".", file.string());
  stored.update(overrides);
  const PolicyType& type = registry.at(stored["type"].get<std::string>());

  Pretrained result;
  result.config = complete(stored, type, file);
  if (type.validate) type.validate(result.config);
  Json build = result.config;
  build["pretrained_path"] = directory.string();  // parts with weights of their own need not look for them
  result.policy = type.make(build);
  result.warnings = load_weights(*result.policy, directory / "model.safetensors", strictness).warnings();
  const at::Device device = choose_device(result.config["device"], result.warnings);
  result.config["device"] = device.str();
  result.policy->to(device);
  result.policy->eval();
  return result;
}

void save_pretrained(const Policy& policy, const Json& config, const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  formats::write_file_atomically(directory / "config.json", formats::dump_python(config, 4, /*ascii=*/true));
  save_weights(policy, directory / "model.safetensors");
}

}  // namespace lerobot::policies
