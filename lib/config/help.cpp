#include <fmt/format.h>

#include "assemble.hpp"
#include "lerobot/config/value.hpp"

namespace lerobot::config {
namespace {

void add_line(std::string& text, const std::string& flag, const std::string& type, const std::string& help,
              const std::string& standard) {
  const std::string left = fmt::format("  --{} {}", flag, type);
  const std::string right = standard.empty() ? help : fmt::format("{} (default: {})", help, standard);
  text += left.size() < 48 ? fmt::format("{:<48} {}\n", left, right) : fmt::format("{}\n{:49}{}\n", left, "", right);
}

void add_setting(std::string& text, const std::string& prefix, const Field& field) {
  std::string standard = field.required ? "required" : field.default_value.dump();
  if (field.default_value.is_string()) standard = field.default_value.get<std::string>();
  if (standard.size() > 60) standard = fmt::format("{} entries", field.default_value.size());
  std::string help = field.help;
  add_line(text, prefix + field.name, type_name(field), help, standard);
}

void add_group(std::string& text, const std::string& title, const std::string& help) {
  text += fmt::format("\n{}: {}\n", title, help);
}

void add_choice(std::string& text, const Node& node, std::string_view kind) {
  add_group(text, node.field.name, node.field.help);
  std::string known;
  for (const Alternative& alternative : node.alternatives) known += (known.empty() ? "" : ",") + alternative.name;
  add_line(text, node.field.name + ".type", '{' + known + '}', "which one", "");
  if (node.field.name == "policy") {
    add_line(text, "policy.path", "path", "start from this policy: a folder with config.json and model.safetensors",
             "");
    if (kind.empty()) text += "  (a policy's own settings: give --policy.type=… with --help)\n";
  }
  for (const Alternative& alternative : node.alternatives) {
    if (!kind.empty() ? alternative.name != kind : node.field.name == "policy") continue;
    text += fmt::format("  with --{}.type={}:\n", node.field.name, alternative.name);
    for (const Field& field : alternative.fields) add_setting(text, node.field.name + '.', field);
  }
}

void add_block(std::string& text, const Node& node, const std::string& prefix) {
  const std::string name = prefix + node.field.name;
  add_group(text, name, node.field.help + (node.nullable ? " (off until one of these is given)" : ""));
  for (const Node& child : node.children)
    if (child.kind == Node::Kind::kSetting) add_setting(text, name + '.', child.field);
  for (const Node& child : node.children)
    if (child.kind == Node::Kind::kBlock) add_block(text, child, name + '.');
}

}  // namespace

std::string help_text(const std::vector<Node>& schema, const std::map<std::string, std::string, std::less<>>& kinds) {
  std::string text =
      "usage: lerobot-train --dataset.repo_id=USER/DATASET --policy.type=TYPE [--name=value ...]\n"
      "       mpirun -np N lerobot-train ...\n\n"
      "A value may also follow its name as the next word. A block may be given whole: "
      "--accelerator.fsdp='{cpu_offload: true}'.\n"
      "Weakest to strongest: defaults, the policy's training preset, the file of --config_path, flags.\n\n"
      "run:\n";
  add_line(text, "help, -h", "", "print this and leave", "");
  add_line(text, "config_path", "path", "a train_config.json, a folder that holds one, or a .json, .yaml or .yml file",
           "");
  for (const Node& node : schema)
    if (node.kind == Node::Kind::kSetting && !node.hidden) add_setting(text, "", node.field);
  for (const Node& node : schema) {
    if (node.kind == Node::Kind::kBlock) add_block(text, node, "");
    const auto kind = kinds.find(node.field.name);
    if (node.kind == Node::Kind::kChoice) add_choice(text, node, kind == kinds.end() ? "" : kind->second);
  }
  return text;
}

}  // namespace lerobot::config
