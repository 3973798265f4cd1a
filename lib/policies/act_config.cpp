#include "lerobot/policies/act_config.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "lerobot/core/error.hpp"

namespace lerobot::policies {
namespace {

using processors::FeatureType;
using processors::PolicyFeature;

/// Keys of the base settings that ACT itself does not read.
constexpr std::array<std::string_view, 11> kPassedOver{
    "type",    "device", "use_amp", "use_peft",        "push_to_hub",        "repo_id",
    "private", "tags",   "license", "pretrained_path", "pretrained_revision"};

[[noreturn]] void wrong_kind(std::string_view key, const Json& value, std::string_view expected) {
  fail(ErrorKind::kConfig, "policy.{}: got {}; expected {}.", key, value.dump(), expected);
}

void read(std::string_view key, const Json& value, bool& out) {
  // LeRobot (Python) declares replace_final_stride_with_dilation as a number and may write 0 or 1.
  if (value.is_number_integer() && (value == 0 || value == 1)) {
    out = value == 1;
    return;
  }
  if (!value.is_boolean()) wrong_kind(key, value, "true or false");
  out = value.get<bool>();
}
void read(std::string_view key, const Json& value, std::int64_t& out) {
  if (!value.is_number_integer()) wrong_kind(key, value, "an integer");
  out = value.get<std::int64_t>();
}
void read(std::string_view key, const Json& value, double& out) {
  if (!value.is_number()) wrong_kind(key, value, "a number");
  out = value.get<double>();
}
void read(std::string_view key, const Json& value, std::string& out) {
  if (!value.is_string()) wrong_kind(key, value, "text");
  out = value.get<std::string>();
}
void read(std::string_view key, const Json& value, nn::Activation& out) {
  std::string name;
  read(key, value, name);
  out = nn::parse_activation(name);
}
void read(std::string_view key, const Json& value, std::vector<PolicyFeature>& out) {
  out = processors::parse_features(value, fmt::format("policy.{}", key));
}
void read(std::string_view key, const Json& value, processors::NormalizationMap& out) {
  out = processors::parse_normalization_map(value, fmt::format("policy.{}", key));
}
template <typename T>
void read(std::string_view key, const Json& value, std::optional<T>& out) {
  out.reset();
  if (!value.is_null()) read(key, value, out.emplace());
}

}  // namespace

ACTConfig ACTConfig::from_json(const Json& json) {
  if (!json.is_object()) fail(ErrorKind::kConfig, "policy: got {}; expected an object of settings.", json.dump());
  ACTConfig config;
  using Reader = std::function<void(std::string_view, const Json&)>;
  const auto into = [](auto& field) -> Reader {
    return [&field](std::string_view key, const Json& value) { read(key, value, field); };
  };
  const std::map<std::string_view, Reader> readers{
      {"input_features", into(config.input_features)},
      {"output_features", into(config.output_features)},
      {"n_obs_steps", into(config.n_obs_steps)},
      {"chunk_size", into(config.chunk_size)},
      {"n_action_steps", into(config.n_action_steps)},
      {"normalization_mapping", into(config.normalization_mapping)},
      {"vision_backbone", into(config.vision_backbone)},
      {"pretrained_backbone_weights", into(config.pretrained_backbone_weights)},
      {"replace_final_stride_with_dilation", into(config.replace_final_stride_with_dilation)},
      {"pre_norm", into(config.pre_norm)},
      {"dim_model", into(config.dim_model)},
      {"n_heads", into(config.n_heads)},
      {"dim_feedforward", into(config.dim_feedforward)},
      {"feedforward_activation", into(config.feedforward_activation)},
      {"n_encoder_layers", into(config.n_encoder_layers)},
      {"n_decoder_layers", into(config.n_decoder_layers)},
      {"use_vae", into(config.use_vae)},
      {"latent_dim", into(config.latent_dim)},
      {"n_vae_encoder_layers", into(config.n_vae_encoder_layers)},
      {"temporal_ensemble_coeff", into(config.temporal_ensemble_coeff)},
      {"dropout", into(config.dropout)},
      {"kl_weight", into(config.kl_weight)},
      {"optimizer_lr", into(config.optimizer_lr)},
      {"optimizer_weight_decay", into(config.optimizer_weight_decay)},
      {"optimizer_lr_backbone", into(config.optimizer_lr_backbone)},
  };
  for (const auto& [key, value] : json.items()) {
    if (const auto reader = readers.find(key); reader != readers.end())
      reader->second(key, value);
    else if (std::find(kPassedOver.begin(), kPassedOver.end(), key) == kPassedOver.end())
      fail(ErrorKind::kConfig, "policy: unknown setting \"{}\" for type act. Remove it or correct its name.", key);
  }
  config.validate();
  return config;
}

void ACTConfig::validate() const {
  if (n_obs_steps != 1)
    fail(ErrorKind::kConfig, "policy.n_obs_steps: got {}; act takes one observation step: set it to 1.", n_obs_steps);
  if (n_action_steps > chunk_size)
    fail(ErrorKind::kConfig,
         "policy.n_action_steps: got {}, more than chunk_size={}; a chunk holds at most chunk_size actions. Lower it.",
         n_action_steps, chunk_size);
  if (!vision_backbone.starts_with("resnet"))
    fail(ErrorKind::kConfig, "policy.vision_backbone: got \"{}\"; expected a resnet, such as resnet18.",
         vision_backbone);
  if (temporal_ensemble_coeff && n_action_steps > 1)
    fail(ErrorKind::kConfig,
         "policy.temporal_ensemble_coeff: set together with n_action_steps={}; ensembling queries the policy at each "
         "step. Set n_action_steps to 1.",
         n_action_steps);
  if (dropout < 0.0 || dropout > 1.0)
    fail(ErrorKind::kConfig, "policy.dropout: got {}; expected a probability between 0 and 1.", dropout);
  const auto positive = [](std::string_view key, std::int64_t value) {
    if (value < 1) fail(ErrorKind::kConfig, "policy.{}: got {}; expected 1 or more.", key, value);
  };
  positive("chunk_size", chunk_size);
  positive("n_action_steps", n_action_steps);
  positive("dim_model", dim_model);
  positive("n_heads", n_heads);
  positive("dim_feedforward", dim_feedforward);
  positive("latent_dim", latent_dim);
  if (use_vae) positive("n_vae_encoder_layers", n_vae_encoder_layers);
  if (dim_model % n_heads != 0)
    fail(ErrorKind::kConfig, "policy.dim_model: {} is not divisible by n_heads={}; choose a multiple of it.", dim_model,
         n_heads);
  if (image_features().empty() && env_feature() == nullptr)
    fail(ErrorKind::kConfig,
         "policy.input_features: act needs at least one image or an environment state among its inputs, and has "
         "neither. Train on a dataset with a camera or with observation.environment_state.");
  static_cast<void>(action_feature());
}

const PolicyFeature* ACTConfig::state_feature() const {
  for (const PolicyFeature& f : input_features)
    if (f.name == "observation.state" && f.type == FeatureType::kState) return &f;
  return nullptr;
}

const PolicyFeature* ACTConfig::env_feature() const {
  for (const PolicyFeature& f : input_features)
    if (f.type == FeatureType::kEnv) return &f;
  return nullptr;
}

std::vector<const PolicyFeature*> ACTConfig::image_features() const {
  std::vector<const PolicyFeature*> images;
  for (const PolicyFeature& f : input_features)
    if (f.type == FeatureType::kVisual) images.push_back(&f);
  return images;
}

const PolicyFeature& ACTConfig::action_feature() const {
  for (const PolicyFeature& f : output_features)
    if (f.name == "action" && f.type == FeatureType::kAction && f.shape.size() == 1) return f;
  fail(ErrorKind::kConfig,
       "policy.output_features: act predicts \"action\", of type ACTION and one dimension; the config has none.");
}

}  // namespace lerobot::policies
