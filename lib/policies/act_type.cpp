#include "lerobot/policies/act_type.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "lerobot/core/error.hpp"

namespace lerobot::policies {
namespace {

std::vector<Field> act_fields() {
  using enum FieldType;
  return {
      {.name = "chunk_size", .type = kInt, .default_value = 100, .help = "actions predicted at once"},
      {.name = "n_action_steps", .type = kInt, .default_value = 100, .help = "actions carried out of each chunk"},
      {.name = "normalization_mapping",
       .type = kStringMap,
       .default_value = {{"VISUAL", "MEAN_STD"}, {"STATE", "MEAN_STD"}, {"ACTION", "MEAN_STD"}},
       .help = "how each kind of feature is normalised"},
      {.name = "vision_backbone",
       .type = kString,
       .default_value = "resnet18",
       .help = "a ResNet by its torchvision name"},
      {.name = "pretrained_backbone_weights",
       .type = kString,
       .default_value = "ResNet18_Weights.IMAGENET1K_V1",
       .optional = true,
       .help = "torchvision's name of the weights, or a file; null: random weights"},
      {.name = "replace_final_stride_with_dilation",
       .type = kBool,
       .default_value = false,
       .help = "keep the resolution of the last stage (ResNet-50 and larger)",
       .int_spelling = true},
      {.name = "pre_norm", .type = kBool, .default_value = false, .help = "normalise before each block"},
      {.name = "dim_model", .type = kInt, .default_value = 512, .help = "width of the transformer"},
      {.name = "n_heads", .type = kInt, .default_value = 8, .help = "attention heads"},
      {.name = "dim_feedforward", .type = kInt, .default_value = 3200, .help = "width of the feed-forward layers"},
      {.name = "feedforward_activation", .type = kString, .default_value = "relu", .help = "relu, gelu or glu"},
      {.name = "n_encoder_layers", .type = kInt, .default_value = 4, .help = "encoder layers"},
      {.name = "n_decoder_layers", .type = kInt, .default_value = 1, .help = "decoder layers"},
      {.name = "use_vae", .type = kBool, .default_value = true, .help = "train with the variational objective"},
      {.name = "latent_dim", .type = kInt, .default_value = 32, .help = "width of the latent"},
      {.name = "n_vae_encoder_layers", .type = kInt, .default_value = 4, .help = "layers of the VAE encoder"},
      {.name = "temporal_ensemble_coeff",
       .type = kFloat,
       .default_value = nullptr,
       .optional = true,
       .help = "average overlapping chunks with this exponent; needs n_action_steps=1"},
      {.name = "dropout", .type = kFloat, .default_value = 0.1, .help = "dropout in the transformer"},
      {.name = "kl_weight", .type = kFloat, .default_value = 10.0, .help = "weight of the KL term of the loss"},
      {.name = "optimizer_lr", .type = kFloat, .default_value = 1e-5, .help = "learning rate of the preset"},
      {.name = "optimizer_weight_decay", .type = kFloat, .default_value = 1e-4, .help = "weight decay of the preset"},
      {.name = "optimizer_lr_backbone",
       .type = kFloat,
       .default_value = 1e-5,
       .help = "learning rate of the vision backbone under the preset"},
  };
}

/// Checks a map of features: name -> {"type": kind, "shape": [positive, ...]}.
void check_features(const Json& features, std::string_view key) {
  constexpr std::array<std::string_view, 6> kKinds{"STATE", "VISUAL", "ENV", "ACTION", "REWARD", "LANGUAGE"};
  if (features.is_null()) return;
  if (!features.is_object())
    fail(ErrorKind::kConfig, "policy.{}: expected name -> {{type, shape}}, got {}.", key, features.dump());
  for (const auto& [name, feature] : features.items()) {
    const auto type = feature.is_object() ? feature.find("type") : feature.end();
    const auto shape = feature.is_object() ? feature.find("shape") : feature.end();
    if (!feature.is_object() || feature.size() != 2 || type == feature.end() || shape == feature.end() ||
        !type->is_string() || !shape->is_array())
      fail(ErrorKind::kConfig, "policy.{}: \"{}\" must be {{\"type\": kind, \"shape\": [...]}}, got {}.", key, name,
           feature.dump());
    if (std::find(kKinds.begin(), kKinds.end(), type->get<std::string>()) == kKinds.end())
      fail(ErrorKind::kConfig,
           "policy.{}: \"{}\" has type {}; expected STATE, VISUAL, ENV, ACTION, REWARD or LANGUAGE.", key, name,
           type->dump());
    for (const Json& extent : *shape)
      if (!extent.is_number_integer() ||
          (extent.is_number_unsigned() ? extent.get<std::uint64_t>() > INT32_MAX : extent.get<std::int64_t>() < 0))
        fail(ErrorKind::kConfig, "policy.{}: \"{}\" has shape {}; expected whole numbers >= 0.", key, name,
             shape->dump());
  }
}

void check_normalization(const Json& mapping) {
  constexpr std::array<std::string_view, 5> kModes{"MIN_MAX", "MEAN_STD", "IDENTITY", "QUANTILES", "QUANTILE10"};
  for (const auto& [kind, mode] : mapping.items())
    if (std::find(kModes.begin(), kModes.end(), mode.get<std::string>()) == kModes.end())
      fail(ErrorKind::kConfig,
           "policy.normalization_mapping: {}={}; expected MIN_MAX, MEAN_STD, IDENTITY, QUANTILES or QUANTILE10.", kind,
           mode.dump());
}

bool has_image_or_environment(const Json& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Json& feature) { return feature.at("type") == "VISUAL" || feature.at("type") == "ENV"; });
}

std::int64_t positive(const Json& config, const char* key, std::int64_t least = 1) {
  const auto value = config.at(key).get<std::int64_t>();
  if (value < least) fail(ErrorKind::kConfig, "policy.{}={}; expected {} or more.", key, value, least);
  return value;
}

void validate_act(const Json& config) {
  const auto n_obs_steps = config.at("n_obs_steps").get<std::int64_t>();
  if (n_obs_steps != 1)
    fail(ErrorKind::kConfig, "policy.n_obs_steps={}: Multiple observation steps are not supported by ACT; set it to 1.",
         n_obs_steps);
  const std::int64_t chunk_size = positive(config, "chunk_size");
  const std::int64_t n_action_steps = positive(config, "n_action_steps");
  if (n_action_steps > chunk_size)
    fail(ErrorKind::kConfig,
         "policy.n_action_steps={} is more than the chunk size, policy.chunk_size={}; lower the first or raise the "
         "second.",
         n_action_steps, chunk_size);
  if (!config.at("temporal_ensemble_coeff").is_null() && n_action_steps > 1)
    fail(ErrorKind::kConfig,
         "policy.temporal_ensemble_coeff={} needs policy.n_action_steps=1, got n_action_steps={}: a new chunk is "
         "predicted at every step.",
         config.at("temporal_ensemble_coeff").dump(), n_action_steps);
  const auto backbone = config.at("vision_backbone").get<std::string>();
  if (!backbone.starts_with("resnet"))
    fail(ErrorKind::kConfig, "policy.vision_backbone=\"{}\"; expected a ResNet, for example resnet18.", backbone);
  if (config.at("replace_final_stride_with_dilation").get<bool>() && (backbone == "resnet18" || backbone == "resnet34"))
    fail(ErrorKind::kConfig,
         "policy.replace_final_stride_with_dilation=true needs a ResNet with bottleneck blocks (resnet50 and "
         "larger), got vision_backbone=\"{}\".",
         backbone);
  const std::int64_t dim_model = positive(config, "dim_model");
  const std::int64_t n_heads = positive(config, "n_heads");
  if (dim_model % n_heads != 0)
    fail(ErrorKind::kConfig, "policy.dim_model={} is not a multiple of policy.n_heads={}.", dim_model, n_heads);
  const auto activation = config.at("feedforward_activation").get<std::string>();
  if (activation != "relu" && activation != "gelu" && activation != "glu")
    fail(ErrorKind::kConfig, "policy.feedforward_activation=\"{}\"; expected relu, gelu or glu.", activation);
  for (const char* key :
       {"dim_feedforward", "latent_dim", "n_encoder_layers", "n_decoder_layers", "n_vae_encoder_layers"})
    positive(config, key);
  const auto dropout = config.at("dropout").get<double>();
  if (!(dropout >= 0.0 && dropout < 1.0))
    fail(ErrorKind::kConfig, "policy.dropout={}; expected 0 <= dropout < 1.", dropout);
  check_normalization(config.at("normalization_mapping"));
  check_features(config.at("input_features"), "input_features");
  check_features(config.at("output_features"), "output_features");
  const Json& inputs = config.at("input_features");
  if (!inputs.empty() && !has_image_or_environment(inputs))
    fail(ErrorKind::kConfig,
         "policy.input_features: ACT needs at least one image or the environment state among the inputs "
         "(a VISUAL feature or observation.environment_state), got {}.",
         inputs.dump());
}

Json act_optimizer(const Json& config) {
  return {{"type", "adamw"}, {"lr", config.at("optimizer_lr")}, {"weight_decay", config.at("optimizer_weight_decay")}};
}

std::vector<std::int64_t> act_action_steps(const Json& config) {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(config.at("chunk_size").get<std::int64_t>()));
  std::iota(steps.begin(), steps.end(), 0);
  return steps;
}

}  // namespace

PolicyType act_type() {
  return {.name = "act",
          .class_name = "ACTPolicy",
          .fields = act_fields(),
          .validate = validate_act,
          .make = {},
          .wrap_modules = {"ACTEncoderLayer", "ACTDecoderLayer"},
          .optimizer_preset = act_optimizer,
          .scheduler_preset = [](const Json&) { return Json(nullptr); },
          .action_delta_indices = act_action_steps,
          .observation_delta_indices = [](const Json&) { return std::vector<std::int64_t>{}; },
          .drop_n_last_frames = 0};
}

}  // namespace lerobot::policies
