#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lerobot/core/json.hpp"
#include "lerobot/nn/feed_forward.hpp"
#include "lerobot/processors/feature.hpp"

namespace lerobot::policies {

/// Settings of ACT, with LeRobot's defaults and names.
struct ACTConfig {
  std::vector<processors::PolicyFeature> input_features;
  std::vector<processors::PolicyFeature> output_features;
  std::int64_t n_obs_steps = 1;
  std::int64_t chunk_size = 100;
  std::int64_t n_action_steps = 100;
  processors::NormalizationMap normalization_mapping{
      {processors::FeatureType::kVisual, processors::NormalizationMode::kMeanStd},
      {processors::FeatureType::kState, processors::NormalizationMode::kMeanStd},
      {processors::FeatureType::kAction, processors::NormalizationMode::kMeanStd}};
  std::string vision_backbone = "resnet18";
  std::optional<std::string> pretrained_backbone_weights = "ResNet18_Weights.IMAGENET1K_V1";
  bool replace_final_stride_with_dilation = false;
  bool pre_norm = false;
  std::int64_t dim_model = 512;
  std::int64_t n_heads = 8;
  std::int64_t dim_feedforward = 3200;
  nn::Activation feedforward_activation = nn::Activation::kRelu;
  std::int64_t n_encoder_layers = 4;
  std::int64_t n_decoder_layers = 1;
  bool use_vae = true;
  std::int64_t latent_dim = 32;
  std::int64_t n_vae_encoder_layers = 4;
  std::optional<double> temporal_ensemble_coeff;
  double dropout = 0.1;
  double kl_weight = 10.0;
  double optimizer_lr = 1e-5;
  double optimizer_weight_decay = 1e-4;
  double optimizer_lr_backbone = 1e-5;

  /// Reads the object of a config.json, or a checked policy block. Missing keys take their defaults; the settings that
  /// every policy has and ACT does not use (device, repo_id, …) are passed over.
  /// Throws: Error{kConfig} on an unknown key, a value of the wrong kind, or what `validate` refuses.
  [[nodiscard]] static ACTConfig from_json(const Json& config);

  /// Throws: Error{kConfig} where two settings disagree or a feature is missing.
  void validate() const;

  /// The input named "observation.state" of type STATE, the first of type ENV, all of type VISUAL in config order, and
  /// the output named "action"; null where there is none.
  [[nodiscard]] const processors::PolicyFeature* state_feature() const;
  [[nodiscard]] const processors::PolicyFeature* env_feature() const;
  [[nodiscard]] std::vector<const processors::PolicyFeature*> image_features() const;
  [[nodiscard]] const processors::PolicyFeature& action_feature() const;
};

}  // namespace lerobot::policies
