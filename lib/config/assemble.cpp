#include "assemble.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "flow.hpp"
#include "lerobot/config/validate.hpp"
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

/// Names a flag that the kind in force does not have, before decoding calls it an unknown key.
void check_kind_flags(const Node& node, const Json& given, const Json& preset, const Arguments& arguments) {
  if (kind_in(node, given).empty() && !preset.is_null())
    check_flags_fit(arguments, node, *node.alternative(preset.at("type").get<std::string>()));
}

std::string kind_of(const Json& block) { return block.is_null() ? "null" : block.at("type").get<std::string>(); }

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

void settle_optimizer(TrainConfig& config, const policies::Registry& registry, const std::vector<Node>& schema,
                      const Json& merged, const Arguments& arguments) {
  const Node& optimizer = node_named(schema, "optimizer");
  const Node& scheduler = node_named(schema, "scheduler");
  const bool preset_on = config.use_policy_training_preset;
  Json chosen;
  Json schedule;
  if (preset_on && config.resume != Resume::kTrue) {
    const auto given = [&](const char* name) {
      const auto found = merged.find(name);
      return found == merged.end() || no_block(*found) ? Json::object() : *found;
    };
    const policies::PolicyType& type = registry.at(config.policy.type());
    const Json preset = type.optimizer_preset(config.policy.settings);
    const Json schedule_preset = type.scheduler_preset(config.policy.settings);
    check_kind_flags(optimizer, given("optimizer"), preset, arguments);
    check_kind_flags(scheduler, given("scheduler"), schedule_preset, arguments);
    chosen = over_preset(optimizer, given("optimizer"), preset);
    const Flag* flag = arguments.last("scheduler");
    const bool off = given("scheduler").empty() && (schedule_preset.is_null() || (flag && no_block(flag->text)));
    if (!off) schedule = over_preset(scheduler, given("scheduler"), schedule_preset);
  } else {
    chosen = decode_choice_by_type(optimizer, merged);
    schedule = decode_choice_by_type(scheduler, merged);
  }
  if (!chosen.is_null()) check_flags_fit(arguments, optimizer, *optimizer.alternative(kind_of(chosen)));
  if (!schedule.is_null()) check_flags_fit(arguments, scheduler, *scheduler.alternative(kind_of(schedule)));
  if (chosen.is_null() || (!preset_on && schedule.is_null()))
    fail(ErrorKind::kConfig,
         "Optimizer and Scheduler must be set {}: optimizer is {}, scheduler is {}. Give --optimizer.type and "
         "--scheduler.type.",
         preset_on ? "in the checkpoint's configuration" : "when use_policy_training_preset=false", kind_of(chosen),
         kind_of(schedule));
  config.optimizer = optimizer_from_decoded(chosen);
  config.scheduler = scheduler_from_decoded(schedule);
  check_settings(*config.optimizer);
  if (config.scheduler) check_settings(*config.scheduler);
}

TrainConfig config_from_tokens(const Json& tokens, const std::vector<Node>& schema) {
  Json decoded = decode_block(schema, tokens);
  for (const Node& node : schema)
    if (node.kind == Node::Kind::kChoice) decoded[node.field.name] = decode_choice_by_type(node, tokens);
  return config_from_decoded(decoded);
}

}  // namespace lerobot::config
