#include "lerobot/config/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "describe.hpp"
#include "json_values.hpp"
#include "lerobot/config/value.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::config {
namespace {

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

/// The declared type that a member of type T asks for.
template <typename T>
void set_type(Field& field) {
  if constexpr (IsOptional<T>::value) {
    field.optional = true;
    set_type<typename T::value_type>(field);
  } else if constexpr (NamedEnum<T>) {
    field.type = FieldType::kEnum;
    for (const auto& name : kEnumNames<T>) field.choices.push_back({std::string(name.text), std::string(name.member)});
  } else if constexpr (std::is_same_v<T, bool>) {
    field.type = FieldType::kBool;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    field.type = FieldType::kInt;
  } else if constexpr (std::is_same_v<T, double>) {
    field.type = FieldType::kFloat;
  } else if constexpr (std::is_same_v<T, std::string>) {
    field.type = FieldType::kString;
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    field.type = FieldType::kIntList;
  } else if constexpr (std::is_same_v<T, std::array<double, 2>>) {
    field.type = FieldType::kFloatList;
    field.tuple_size = 2;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    field.type = FieldType::kStringList;
  } else if constexpr (std::is_same_v<T, std::variant<std::vector<std::string>, std::string>>) {
    field.type = FieldType::kStringListOrString;
  } else if constexpr (std::is_same_v<T, std::vector<std::pair<std::string, std::string>>>) {
    field.type = FieldType::kStringMap;
  } else {
    static_assert(std::is_same_v<T, Json> || std::is_same_v<T, std::vector<ImageTransform>>);
    field.type = FieldType::kJson;
  }
}

/// The visitor that turns declarations into nodes.
class SchemaBuilder {
 public:
  explicit SchemaBuilder(const policies::Registry* registry) : registry_(registry) {}

  template <typename T>
  void setting(const char* name, const T& value, const char* help, Traits traits = {}) {
    Node node{.kind = Node::Kind::kSetting, .field = {.name = name, .default_value = to_value(value), .help = help}};
    set_type<T>(node.field);
    node.field.required = traits.required;
    node.hidden = traits.hidden;
    nodes.push_back(std::move(node));
  }
  template <typename T>
  void own_setting(const char* name, const T& value, const char* help) {
    setting(name, value, help);
  }
  void number(const char* name, const std::optional<std::int64_t>& value, const char* help, Traits traits) {
    setting(name, value.value_or(0), help, traits);
  }
  template <typename T>
  void block(const char* name, T& value, const char* help) {
    SchemaBuilder inner(registry_);
    describe(inner, value);
    nodes.push_back(
        {.kind = Node::Kind::kBlock, .field = {.name = name, .help = help}, .children = std::move(inner.nodes)});
  }
  template <typename T>
  void optional_block(const char* name, std::optional<T>&, const char* help) {
    T value;
    block(name, value, help);
    nodes.back().nullable = true;
  }
  void choice(const char* name, std::optional<OptimizerConfig>&, const char* help) {
    Node& node = add_choice(name, help);
    for (const auto& kind : kEnumNames<OptimizerKind>) {
      OptimizerConfig config = default_optimizer(kind.value);
      node.alternatives.push_back({std::string(kind.text), fields_of(config)});
    }
  }
  void choice(const char* name, std::optional<SchedulerConfig>&, const char* help) {
    Node& node = add_choice(name, help);
    for (const auto& kind : kEnumNames<SchedulerKind>) {
      SchedulerConfig config;
      config.kind = kind.value;
      node.alternatives.push_back({std::string(kind.text), fields_of(config)});
    }
  }
  void policy(const char* name, PolicyConfig&, const char* help) {
    Node& node = add_choice(name, help);
    for (const std::string& type : registry_->names()) {
      std::vector<Field> fields = policies::base_policy_fields();
      const auto& own = registry_->at(type).fields;
      fields.insert(fields.end(), own.begin(), own.end());
      node.alternatives.push_back({type, std::move(fields)});
    }
  }
  void unsupported(const char* name, const char* help) {
    nodes.push_back({.kind = Node::Kind::kUnsupported, .field = {.name = name, .help = help}});
  }

  std::vector<Node> nodes;

 private:
  Node& add_choice(const char* name, const char* help) {
    nodes.push_back({.kind = Node::Kind::kChoice, .field = {.name = name, .help = help}});
    return nodes.back();
  }
  template <typename T>
  std::vector<Field> fields_of(T& config) {
    SchemaBuilder inner(registry_);
    describe(inner, config);
    std::vector<Field> fields;
    for (Node& node : inner.nodes) fields.push_back(std::move(node.field));
    return fields;
  }

  const policies::Registry* registry_;
};

[[noreturn]] void unknown_key(const std::string& prefix, const std::string& key, std::string_view owner,
                              const std::vector<std::string>& known) {
  const std::string near = nearest_name(key, known);
  fail(ErrorKind::kConfig, "`{}{}`: the key is not valid for {}{}", prefix, key, owner,
       near.empty() ? "." : fmt::format("; did you mean \"{}\"?", near));
}

Json decode_field(const Field& field, const Json& tokens, const std::string& prefix) {
  const auto found = tokens.find(field.name);
  if (found != tokens.end()) return decode_value(field, prefix + field.name, *found);
  if (field.required)
    fail(ErrorKind::kConfig, "Missing required field `{}{}`; give --{}{}=…", prefix, field.name, prefix, field.name);
  return field.default_value;
}

void need_map(const Json& tokens, const std::string& prefix) {
  if (tokens.is_object()) return;
  const std::string name = prefix.empty() ? "the configuration" : prefix.substr(0, prefix.size() - 1);
  fail(ErrorKind::kConfig, "`{}`: Couldn't parse {} into a block of settings; expected a map", name,
       tokens.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80));
}

Json decode_node(const Node& node, const Json& tokens, const std::string& prefix) {
  const auto found = tokens.find(node.field.name);
  const bool absent = found == tokens.end() || found->is_null() || *found == "null" || *found == "~";
  switch (node.kind) {
    case Node::Kind::kSetting:
      return decode_field(node.field, tokens, prefix);
    case Node::Kind::kChoice:
      return nullptr;
    case Node::Kind::kUnsupported:
      return absent ? Json() : Json(found->dump(-1, ' ', false, Json::error_handler_t::replace));
    case Node::Kind::kBlock:
      break;
  }
  if (absent && node.nullable) return nullptr;
  return decode_block(node.children, absent ? Json::object() : *found, prefix + node.field.name + '.');
}

}  // namespace

const Alternative* Node::alternative(std::string_view type) const {
  const auto found =
      std::find_if(alternatives.begin(), alternatives.end(), [&](const Alternative& a) { return a.name == type; });
  return found == alternatives.end() ? nullptr : &*found;
}

std::vector<Node> train_schema(const policies::Registry& registry) {
  SchemaBuilder builder(&registry);
  TrainConfig defaults;
  describe(builder, defaults);
  return std::move(builder.nodes);
}

Json decode_block(const std::vector<Node>& nodes, const Json& tokens, const std::string& prefix) {
  need_map(tokens, prefix);
  std::vector<std::string> known;
  for (const Node& node : nodes) known.push_back(node.field.name);
  for (const auto& [key, value] : tokens.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      unknown_key(
          prefix, key,
          prefix.empty() ? "a training configuration" : fmt::format("`{}`", prefix.substr(0, prefix.size() - 1)),
          known);
  Json decoded = Json::object();
  for (const Node& node : nodes) decoded[node.field.name] = decode_node(node, tokens, prefix);
  return decoded;
}

Json decode_choice(const Alternative& alternative, const Json& tokens, const std::string& prefix) {
  need_map(tokens, prefix);
  std::vector<std::string> known{"type"};
  for (const Field& field : alternative.fields) known.push_back(field.name);
  for (const auto& [key, value] : tokens.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      unknown_key(prefix, key, fmt::format("{}type={}", prefix, alternative.name), known);
  Json decoded{{"type", alternative.name}};
  for (const Field& field : alternative.fields) decoded[field.name] = decode_field(field, tokens, prefix);
  return decoded;
}

std::vector<std::string> flag_names(const std::vector<Node>& nodes) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Node& node : nodes) {
    if (node.hidden) continue;
    const std::string& name = node.field.name;
    add(name);
    for (const std::string& inner : flag_names(node.children)) add(name + '.' + inner);
    if (node.kind == Node::Kind::kChoice) add(name + ".type");
    for (const Alternative& alternative : node.alternatives)
      for (const Field& field : alternative.fields) add(name + '.' + field.name);
  }
  return names;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;  // further away is no misspelling
  if (name.size() > 200) return best;
  for (const std::string& candidate : names) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t changed = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace lerobot::config
