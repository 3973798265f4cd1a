#include "lerobot/policies/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lerobot/core/error.hpp"

namespace lerobot::policies {

void Registry::add(PolicyType type) {
  if (contains(type.name))
    fail(ErrorKind::kInternal, "policies: \"{}\" is registered twice; names must differ.", type.name);
  types_.push_back(std::move(type));
}

const PolicyType& Registry::at(std::string_view name) const {
  const auto found =
      std::find_if(types_.begin(), types_.end(), [&](const PolicyType& type) { return type.name == name; });
  if (found == types_.end())
    fail(ErrorKind::kUsage, "policy.type: invalid choice \"{}\"; known: {}.", name, fmt::join(names(), ", "));
  return *found;
}

bool Registry::contains(std::string_view name) const {
  return std::any_of(types_.begin(), types_.end(), [&](const PolicyType& type) { return type.name == name; });
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> all;
  for (const PolicyType& type : types_) all.push_back(type.name);
  return all;
}

const std::vector<Field>& base_policy_fields() {
  static const std::vector<Field> fields{
      {.name = "n_obs_steps", .type = FieldType::kInt, .default_value = 1, .help = "observation steps per sample"},
      {.name = "input_features",
       .type = FieldType::kJson,
       .default_value = Json::object(),
       .optional = true,
       .help = "inputs as name -> {type, shape}; empty: taken from the dataset"},
      {.name = "output_features",
       .type = FieldType::kJson,
       .default_value = Json::object(),
       .optional = true,
       .help = "outputs as name -> {type, shape}; always those of the dataset"},
      {.name = "device",
       .type = FieldType::kString,
       .default_value = nullptr,
       .optional = true,
       .help = "cpu, cuda, cuda:K, mps or xpu; null: the best one present"},
      {.name = "use_amp",
       .type = FieldType::kBool,
       .default_value = false,
       .help = "kept for old files; accelerator.mixed_precision sets the precision of training"},
      {.name = "use_peft",
       .type = FieldType::kBool,
       .default_value = false,
       .help = "the pretrained checkpoint holds an adapter"},
      {.name = "push_to_hub",
       .type = FieldType::kBool,
       .default_value = true,
       .help = "publish the policy after training; needs policy.repo_id"},
      {.name = "repo_id",
       .type = FieldType::kString,
       .default_value = nullptr,
       .optional = true,
       .help = "repository to publish to, user/name"},
      {.name = "private",
       .type = FieldType::kBool,
       .default_value = nullptr,
       .optional = true,
       .help = "publish to a private repository"},
      {.name = "tags",
       .type = FieldType::kStringList,
       .default_value = nullptr,
       .optional = true,
       .help = "tags of the published policy"},
      {.name = "license",
       .type = FieldType::kString,
       .default_value = nullptr,
       .optional = true,
       .help = "licence of the published policy"},
      {.name = "pretrained_path",
       .type = FieldType::kString,
       .default_value = nullptr,
       .optional = true,
       .help = "where the weights come from; set by policy.path and by a resume"},
      {.name = "pretrained_revision",
       .type = FieldType::kString,
       .default_value = nullptr,
       .optional = true,
       .help = "revision of the pretrained policy; stored"},
  };
  return fields;
}

}  // namespace lerobot::policies
