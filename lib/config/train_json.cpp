#include "lerobot/config/train_json.hpp"

#include <fmt/format.h>

#include "assemble.hpp"
#include "describe.hpp"
#include "json_values.hpp"
#include "lerobot/config/value.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/json.hpp"
#include "sources.hpp"

namespace lerobot::config {
namespace {

/// The visitor that writes a config. Settings that are ours alone go to `own`.
struct Writer {
  Json json = Json::object();
  Json own = Json::object();

  template <typename T>
  void setting(const char* name, const T& value, const char*, Traits = {}) {
    json[name] = to_value(value);
  }
  void setting(const char* name, const Resume& value, const char*, Traits = {}) { json[name] = value == Resume::kTrue; }
  template <typename T>
  void own_setting(const char* name, const T& value, const char*) {
    own[name] = to_value(value);
  }
  void number(const char* name, const std::optional<std::int64_t>& value, const char*, Traits) {
    json[name] = to_value(value);
  }
  template <typename T>
  void block(const char* name, T& value, const char*) {
    Writer inner;
    describe(inner, value);
    json[name] = std::move(inner.json);
  }
  template <typename T>
  void optional_block(const char* name, std::optional<T>& value, const char* help) {
    json[name] = nullptr;
    if (value) block(name, *value, help);
  }
  template <typename T>
  void choice(const char* name, std::optional<T>& value, const char*) {
    json[name] = nullptr;
    if (!value) return;
    Writer inner;
    inner.json["type"] = std::string(text(value->kind));
    describe(inner, *value);
    json[name] = std::move(inner.json);
  }
  void policy(const char* name, const PolicyConfig& value, const char*) {
    json[name] = value.settings.empty() ? Json() : value.settings;
  }
  void unsupported(const char* name, const char*) { json[name] = nullptr; }
};

/// The visitor that reads a config from decoded JSON in which every key is present.
struct Reader {
  const Json& json;

  template <typename T>
  void setting(const char* name, T& value, const char*, Traits = {}) {
    from_value(json.at(name), value);
  }
  template <typename T>
  void own_setting(const char* name, T& value, const char*) {
    from_value(json.at(name), value);
  }
  void number(const char* name, std::optional<std::int64_t>& value, const char*, Traits) {
    from_value(json.at(name), value);
  }
  template <typename T>
  void block(const char* name, T& value, const char*) {
    Reader inner{json.at(name)};
    describe(inner, value);
  }
  template <typename T>
  void optional_block(const char* name, std::optional<T>& value, const char* help) {
    value.reset();
    if (!json.at(name).is_null()) block(name, value.emplace(), help);
  }
  template <typename T>
  void choice(const char* name, std::optional<T>& value, const char*) {
    value.reset();
    const Json& block = json.at(name);
    if (block.is_null()) return;
    from_value(block.at("type"), value.emplace().kind);
    Reader inner{block};
    describe(inner, *value);
  }
  void policy(const char* name, PolicyConfig& value, const char*) {
    value.settings = json.at(name).is_null() ? Json::object() : json.at(name);
  }
  void unsupported(const char*, const char*) {}
};

}  // namespace

std::vector<ImageTransform> default_image_transforms() {
  const auto jitter = [](const char* name, const char* type, double low, double high) {
    return ImageTransform{name, 1.0, type, {{name, {low, high}}}};
  };
  return {jitter("brightness", "ColorJitter", 0.8, 1.2),
          jitter("contrast", "ColorJitter", 0.8, 1.2),
          jitter("saturation", "ColorJitter", 0.5, 1.5),
          jitter("hue", "ColorJitter", -0.05, 0.05),
          jitter("sharpness", "SharpnessJitter", 0.5, 1.5),
          ImageTransform{"affine", 1.0, "RandomAffine", {{"degrees", {-5.0, 5.0}}, {"translate", {0.05, 0.05}}}}};
}

OptimizerConfig default_optimizer(OptimizerKind kind) {
  OptimizerConfig config;
  config.kind = kind;
  config.weight_decay = kind == OptimizerKind::kAdamW ? 1e-2 : 0.0;
  return config;
}

void from_value(const Json& json, std::vector<ImageTransform>& transforms) {
  transforms.clear();
  const std::vector<Field> fields{{.name = "weight", .type = FieldType::kFloat, .default_value = 1.0},
                                  {.name = "type", .type = FieldType::kString, .default_value = "Identity"},
                                  {.name = "kwargs", .type = FieldType::kJson, .default_value = Json::object()}};
  for (const auto& [name, value] : json.items()) {
    std::vector<Node> nodes;
    for (const Field& field : fields) nodes.push_back({.kind = Node::Kind::kSetting, .field = field});
    const Json decoded = decode_block(nodes, tokens_from_json(value), "dataset.image_transforms.tfs." + name + '.');
    transforms.push_back(
        {name, decoded.at("weight").get<double>(), decoded.at("type").get<std::string>(), decoded.at("kwargs")});
  }
}

Json to_json(const TrainConfig& config) {
  TrainConfig copy = config;
  Writer writer;
  describe(writer, copy);
  TrainConfig defaults;
  Writer standard;
  describe(standard, defaults);
  for (const char* place :
       {"/tf32", "/trackio", "/accelerator/grad_scaler", "/accelerator/fsdp/mixed_precision_policy"}) {
    const Json::json_pointer key(place);
    if (writer.json.at(key) == standard.json.at(key)) writer.json.at(key.parent_pointer()).erase(key.back());
  }
  return std::move(writer.json);
}

Json to_json(const RunSettings& settings) {
  RunSettings copy = settings;
  Writer writer;
  describe(writer, copy);
  writer.own.erase("plan");
  return std::move(writer.own);
}

TrainConfig config_from_decoded(const Json& decoded) {
  TrainConfig config;
  Reader reader{decoded};
  describe(reader, config);
  return config;
}

std::optional<OptimizerConfig> optimizer_from_decoded(const Json& block) {
  std::optional<OptimizerConfig> config;
  const Json json{{"optimizer", block}};
  Reader{json}.choice("optimizer", config, "");
  return config;
}

std::optional<SchedulerConfig> scheduler_from_decoded(const Json& block) {
  std::optional<SchedulerConfig> config;
  const Json json{{"scheduler", block}};
  Reader{json}.choice("scheduler", config, "");
  return config;
}

TrainConfig train_config_from_json(const Json& json, const policies::Registry& registry,
                                   const std::filesystem::path& where) {
  TrainConfig config;
  naming_file(where, {}, [&] {
    Json tokens = tokens_from_json(json);
    drop_old_keys(tokens);
    config = config_from_tokens(tokens, train_schema(registry));
  });
  return config;
}

TrainConfig read_train_config(const std::filesystem::path& path, const policies::Registry& registry) {
  return train_config_from_json(formats::read_json(path, ErrorKind::kConfig), registry, path);
}

}  // namespace lerobot::config
