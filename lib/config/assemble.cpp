#include "assemble.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "flow.hpp"
#include "lerobot/config/value.hpp"
#include "lerobot/core/error.hpp"
#include "sources.hpp"

namespace lerobot::config {
namespace {

/// `block` with its `type` set, decoded.
Json decode_as(const Node& node, const Json& block, std::string_view kind) {
  return decode_choice(*node.alternative(kind), block, node.field.name + '.');
}

/// The type that fields without a type belong to; empty when there is none.
std::string_view default_kind(const Node& node) { return node.field.name == "optimizer" ? "adam" : ""; }

[[noreturn]] void missing_type(const Node& node) {
  std::vector<std::string> known;
  for (const Alternative& alternative : node.alternatives) known.push_back(alternative.name);
  fail(ErrorKind::kConfig, "`{}`: settings are given, but no type; give --{}.type= one of {}.", node.field.name,
       node.field.name, fmt::join(known, ", "));
}

/// `given` on top of `preset`, where another type replaces the preset.
Json over_preset(const Node& node, const Json& given, const Json& preset) {
  const std::string kind = kind_in(node, given);
  if (preset.is_null() || (!kind.empty() && kind != preset.at("type").get<std::string>())) {
    if (kind.empty()) missing_type(node);
    return decode_as(node, given, kind);
  }
  Json block = tokens_from_json(preset);
  overlay(block, given);
  return decode_as(node, block, preset.at("type").get<std::string>());
}

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

const Node& node_named(const std::vector<Node>& schema, std::string_view name) {
  const auto found =
      std::find_if(schema.begin(), schema.end(), [&](const Node& node) { return node.field.name == name; });
  if (found == schema.end()) fail(ErrorKind::kInternal, "config: no setting is called \"{}\".", name);
  return *found;
}

bool no_block(const Json& tokens) { return tokens.is_null() || tokens == "null" || tokens == "~"; }

std::string kind_in(const Node& node, const Json& block) {
  if (!block.is_object()) return {};
  const auto found = block.find("type");
  if (found == block.end() || no_block(*found)) return {};
  const std::string kind = found->is_string() ? unquoted(found->get<std::string>()) : found->dump();
  if (node.alternative(kind)) return kind;
  std::vector<std::string> known;
  for (const Alternative& alternative : node.alternatives) known.push_back(alternative.name);
  fail(ErrorKind::kConfig, "`{}.type`: unknown type \"{}\"; known: {}.", node.field.name, kind, fmt::join(known, ", "));
}

Json decode_choice_by_type(const Node& node, const Json& tokens) {
  const auto found = tokens.find(node.field.name);
  if (found == tokens.end() || no_block(*found)) return nullptr;
  const std::string kind = kind_in(node, *found);
  if (kind.empty() && default_kind(node).empty()) missing_type(node);
  return decode_as(node, *found, kind.empty() ? default_kind(node) : kind);
}

Json optimizer_in_force(const Node& node, const Json& given, const Json& preset) {
  return no_block(given) ? over_preset(node, Json::object(), preset) : over_preset(node, given, preset);
}

Json scheduler_in_force(const Node& node, const Json& given, const Json& preset, bool cleared) {
  if (no_block(given)) return preset.is_null() || cleared ? Json() : over_preset(node, Json::object(), preset);
  return over_preset(node, given, preset);
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
