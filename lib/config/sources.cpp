#include "sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "lerobot/config/value.hpp"
#include "lerobot/formats/json.hpp"

namespace lerobot::config {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kMaxConfigBytes = 4u << 20;

bool is_yaml(const fs::path& file) { return file.extension() == ".yaml" || file.extension() == ".yml"; }

std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) fail(ErrorKind::kConfig, "{}: cannot be read.", file.string());
  return std::move(text).str();
}

/// The field that a dotted flag sets; nullptr for blocks and for what the schema has not.
const Field* find_field(const std::vector<Node>& nodes, std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::string_view head = name.substr(0, dot);
  for (const Node& node : nodes) {
    if (node.field.name != head) continue;
    if (dot == name.npos) return node.kind == Node::Kind::kSetting ? &node.field : nullptr;
    const std::string_view rest = name.substr(dot + 1);
    if (node.kind == Node::Kind::kBlock) return find_field(node.children, rest);
    for (const Alternative& alternative : node.alternatives)
      for (const Field& field : alternative.fields)
        if (field.name == rest) return &field;
  }
  return nullptr;
}

/// The tokens of a flag's text. Text for maps and blocks is taken apart, so that it merges with what files give.
Json tokens_of_flag(const Flag& flag, const Field* field) {
  const bool map = !field || field->type == FieldType::kStringMap || field->type == FieldType::kJson;
  if (map && flag.text.find('{') != std::string::npos)
    if (auto tokens = tokens_from_flow(flag.text); tokens && tokens->is_object()) return *tokens;
  return flag.text;
}

}  // namespace

fs::path locate_config(const fs::path& config_path) {
  std::error_code error;
  const fs::file_status status = fs::status(config_path, error);
  if (!fs::exists(status))
    fail(ErrorKind::kConfig, "config_path: {}: no such file or directory, hub download is not available.",
         config_path.string());
  if (!fs::is_directory(status)) return config_path;
  for (const fs::path& file :
       {config_path / "train_config.json", config_path / "pretrained_model" / "train_config.json"})
    if (fs::exists(file, error)) return file;
  fail(ErrorKind::kConfig, "config_path: {} holds no train_config.json, nor does its pretrained_model/.",
       config_path.string());
}

Json read_tokens(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) fail(ErrorKind::kConfig, "{}: not a regular file.", file.string());
  const std::uintmax_t size = fs::file_size(file, error);
  if (size > kMaxConfigBytes)
    fail(ErrorKind::kConfig, "{}: {} bytes are too many for a configuration; the limit is {}.", file.string(), size,
         kMaxConfigBytes);
  Json tokens = is_yaml(file) ? tokens_from_yaml(read_text(file), file)
                              : tokens_from_json(formats::read_json(file, ErrorKind::kConfig,
                                                                    {.max_bytes = kMaxConfigBytes, .max_depth = 64}));
  if (!tokens.is_object()) fail(ErrorKind::kConfig, "{}: expected a map of settings at the top.", file.string());
  return tokens;
}

Json read_policy_tokens(const fs::path& folder) {
  std::error_code error;
  const fs::path file = folder / "config.json";
  if (!fs::exists(file, error))
    fail(ErrorKind::kConfig,
         "policy.path: config.json not found in {}; expected a local folder with config.json and "
         "model.safetensors (hub download is not available).",
         folder.string());
  return read_tokens(file);
}

void drop_old_keys(Json& tokens) {
  if (!tokens.is_object()) return;
  const auto old = tokens.find("use_rabc");
  const bool on = old != tokens.end() && *old == "true";
  Json weighting = Json::object();
  for (const char* key : {"progress_path", "kappa", "epsilon", "head_mode"}) {
    const std::string name = std::string("rabc_") + key;
    if (const auto found = tokens.find(name); found != tokens.end()) {
      weighting[key] = *found;
      tokens.erase(name);
    }
  }
  tokens.erase("use_rabc");
  if (!on) return;
  const auto present = tokens.find("sample_weighting");
  if (present != tokens.end() && !present->is_null()) return;
  weighting["type"] = "rabc";
  tokens["sample_weighting"] = std::move(weighting);
}

void overlay(Json& base, const Json& top) {
  if (!base.is_object() || !top.is_object()) {
    base = top;
    return;
  }
  for (const auto& [key, value] : top.items()) {
    const auto found = base.find(key);
    if (found == base.end())
      base[key] = value;
    else
      overlay(*found, value);
  }
}

void apply_flag(Json& tokens, const Flag& flag, const std::vector<Node>& schema) {
  Json top = tokens_of_flag(flag, find_field(schema, flag.name));
  for (std::size_t end = flag.name.size();;) {
    const std::size_t dot = flag.name.rfind('.', end - 1);
    const std::size_t begin = dot == std::string::npos ? 0 : dot + 1;
    Json outer = Json::object();
    outer[flag.name.substr(begin, end - begin)] = std::move(top);
    top = std::move(outer);
    if (dot == std::string::npos || dot == 0) break;
    end = dot;
  }
  overlay(tokens, top);
}

std::optional<std::string> text_in(const Json& tokens, const char* key) {
  if (!tokens.is_object() || !tokens.contains(key)) return std::nullopt;
  const Field field{.name = key, .type = FieldType::kString, .default_value = {}, .optional = true};
  const Json value = decode_value(field, key, tokens.at(key));
  return value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
}

void naming_file(const fs::path& file, const Arguments& arguments, const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    const std::size_t begin = message.find('`') + 1;  // 0 when no setting is named
    const std::string name(message.substr(begin, begin == 0 ? 0 : message.find('`', begin) - begin));
    const bool from_flag = std::any_of(arguments.flags.begin(), arguments.flags.end(), [&](const Flag& flag) {
      return flag.is_of(name) || Flag{name, "", ""}.is_of(flag.name);
    });
    if (file.empty() || name.empty() || from_flag) throw;
    throw Error(error.kind(), fmt::format("{} (in {})", message, file.string()));
  }
}

}  // namespace lerobot::config
