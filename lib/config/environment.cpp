#include "environment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "lerobot/core/error.hpp"

namespace lerobot::config {
namespace {

constexpr std::array<const char*, 3> kGuarded{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "ACCELERATE_USE_FSDP",
                                              "ACCELERATE_USE_PARALLELISM_CONFIG"};
constexpr const char* kAcknowledge = "LEROBOT_ALLOW_ACCELERATE_ENV";

/// K of `cuda:K`, or nothing when the text is anything else.
std::optional<int> cuda_index(std::string_view device) {
  if (!device.starts_with("cuda:")) return std::nullopt;
  device.remove_prefix(5);
  int index = 0;
  const auto [end, error] = std::from_chars(device.data(), device.data() + device.size(), index);
  return error == std::errc() && end == device.data() + device.size() && index >= 0 ? std::optional(index)
                                                                                    : std::nullopt;
}

}  // namespace

Environment process_environment() {
  Environment environment;
  environment.now = std::time(nullptr);
  for (const char* name : {kGuarded[0], kGuarded[1], kGuarded[2], kAcknowledge})
    if (const char* value = std::getenv(name)) environment.variables[name] = value;
  return environment;
}

void check_variables(const std::map<std::string, std::string, std::less<>>& variables) {
  std::vector<std::string> found;
  for (const char* name : kGuarded)
    if (variables.contains(name)) found.emplace_back(name);
  const auto acknowledged = variables.find(kAcknowledge);
  if (found.empty() || (acknowledged != variables.end() && !acknowledged->second.empty())) return;
  fail(ErrorKind::kConfig,
       "The environment sets {}, which configure another launcher and have no effect here. Unset them and say what "
       "you want with --parallelism.* and --accelerator.*, or set {}=1 to start all the same.",
       fmt::join(found, ", "), kAcknowledge);
}

std::string choose_device(const Json& requested, const Devices& devices, std::vector<std::string>& warnings) {
  const std::string best = devices.num_cuda > 0 ? "cuda" : devices.mps ? "mps" : devices.xpu ? "xpu" : "cpu";
  if (requested.is_null()) {
    warnings.push_back(fmt::format("policy.device: null asks for an automatic choice; using \"{}\".{}", best,
                                   best == "cpu" ? " Training on the CPU is slow." : ""));
    return best;
  }
  const auto name = requested.get<std::string>();
  const std::optional<int> index = cuda_index(name);
  constexpr std::array<std::string_view, 4> kKnown{"cpu", "cuda", "mps", "xpu"};
  if (!index && std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end())
    fail(ErrorKind::kConfig, "policy.device: Unknown device \"{}\"; expected cpu, cuda, cuda:K, mps, xpu or null.",
         name);
  const bool present = name == "cpu" || (name == "cuda" && devices.num_cuda > 0) ||
                       (index && *index < devices.num_cuda) || (name == "mps" && devices.mps) ||
                       (name == "xpu" && devices.xpu);
  if (present) return name;
  warnings.push_back(fmt::format("policy.device: \"{}\" is not available here; using \"{}\" instead.", name, best));
  return best;
}

}  // namespace lerobot::config
