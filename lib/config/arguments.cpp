#include "arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lerobot/core/error.hpp"

namespace lerobot::config {
namespace {

/// Whether a word that begins with a dash is a number and so may be a value: -1, -.5, -1e-4, -inf.
bool is_negative_number(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         ((word[1] >= '0' && word[1] <= '9') || (word[1] == '.' && word.size() > 2) || word == "-inf" ||
          word == "-nan");
}

bool can_be_value(std::string_view word) { return !word.starts_with('-') || word == "-" || is_negative_number(word); }

std::string with_suggestion(const Flag& flag, const std::vector<std::string>& names) {
  const std::string near = nearest_name(flag.name, names);
  return near.empty() ? flag.word : fmt::format("{} (did you mean --{}?)", flag.word, near);
}

const Node* choice_of(const Flag& flag, const std::vector<Node>& schema, std::string_view suffix) {
  for (const Node& node : schema)
    if (node.kind == Node::Kind::kChoice && flag.name == fmt::format("{}{}", node.field.name, suffix)) return &node;
  return nullptr;
}

void check_kind(const Flag& flag, const Node& node) {
  if (node.alternative(flag.text)) return;
  std::vector<std::string> known;
  for (const Alternative& alternative : node.alternatives) known.push_back(alternative.name);
  fail(ErrorKind::kUsage, "{}.type: invalid choice \"{}\"; choose from {}.", node.field.name, flag.text,
       fmt::join(known, ", "));
}

}  // namespace

const Flag* Arguments::last(std::string_view name) const {
  const auto found = std::find_if(flags.rbegin(), flags.rend(), [&](const Flag& flag) { return flag.name == name; });
  return found == flags.rend() ? nullptr : &*found;
}

Arguments split_arguments(std::span<const std::string> words) {
  Arguments arguments;
  std::vector<std::string> strangers;
  std::string without_value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      arguments.help = true;
    } else if (!word.starts_with("--") || word.size() == 2 || word[2] == '=') {
      strangers.push_back(word);
    } else if (const std::size_t equals = word.find('='); equals != word.npos) {
      arguments.flags.push_back({word.substr(2, equals - 2), word.substr(equals + 1), word});
    } else if (i + 1 < words.size() && can_be_value(words[i + 1])) {
      arguments.flags.push_back({word.substr(2), words[i + 1], word});
      ++i;
    } else if (without_value.empty()) {
      without_value = word;
    }
  }
  if (arguments.help) return arguments;
  if (!strangers.empty())
    fail(ErrorKind::kUsage, "unrecognized arguments: {}. Settings are written --name=value.",
         fmt::join(strangers, " "));
  if (!without_value.empty())
    fail(ErrorKind::kUsage, "argument {}: expected one argument; write {}=value.", without_value, without_value);
  return arguments;
}

void check_form(const Arguments& arguments, const std::vector<Node>& schema) {
  std::vector<std::string> names = flag_names(schema);
  for (const char* name : {"config_path", "policy.path"}) names.emplace_back(name);
  std::vector<std::string> strangers;
  for (const Flag& flag : arguments.flags) {
    const bool opaque = std::any_of(schema.begin(), schema.end(), [&](const Node& node) {
      return node.kind == Node::Kind::kUnsupported && flag.is_of(node.field.name);
    });
    if (!opaque && std::find(names.begin(), names.end(), flag.name) == names.end())
      strangers.push_back(with_suggestion(flag, names));
  }
  if (!strangers.empty()) fail(ErrorKind::kUsage, "unrecognized arguments: {}", fmt::join(strangers, " "));
  for (const Flag& flag : arguments.flags)
    if (const Node* node = choice_of(flag, schema, ".type")) check_kind(flag, *node);
  for (const Node& node : schema)
    if (const Flag* type = arguments.last(node.field.name + ".type"); type && node.kind == Node::Kind::kChoice)
      check_flags_fit(arguments, node, *node.alternative(type->text));
}

void check_flags_fit(const Arguments& arguments, const Node& node, const Alternative& alternative) {
  std::vector<std::string> names{node.field.name, node.field.name + ".type", node.field.name + ".path"};
  for (const Field& field : alternative.fields) names.push_back(node.field.name + '.' + field.name);
  std::vector<std::string> strangers;
  for (const Flag& flag : arguments.flags)
    if (flag.is_of(node.field.name) && std::find(names.begin(), names.end(), flag.name) == names.end())
      strangers.push_back(with_suggestion(flag, names));
  if (!strangers.empty())
    fail(ErrorKind::kUsage, "unrecognized arguments: {} (not valid for {}.type={})", fmt::join(strangers, " "),
         node.field.name, alternative.name);
}

}  // namespace lerobot::config
