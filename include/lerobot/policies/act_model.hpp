#pragma once

#include <map>
#include <utility>

#include "lerobot/nn/noise.hpp"
#include "lerobot/nn/resnet.hpp"
#include "lerobot/policies/act_layers.hpp"
#include "lerobot/processors/batch.hpp"

// B batch, C chunk, A action, S state, E environment state, Z latent, D model width.
namespace lerobot::policies {

/// What the ACT network gives. `latent_B2Z` holds the mean and, behind it, the log variance of the latent; it is
/// undefined when the latent is zero.
struct ACTOutput {
  at::Tensor actions_BCA;
  at::Tensor latent_B2Z;

  template <typename F>
  void visit_tensors(F&& f) {
    for (at::Tensor* tensor : {&actions_BCA, &latent_B2Z})
      if (tensor->defined()) f(*tensor);
  }
};

/// The Action Chunking Transformer: a VAE encoder over the actions, a ResNet, a transformer.
///
/// Source: "Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware" (Zhao et al., 2023), as LeRobot builds
/// it; parameter names, shapes, registration order and the order in which initial values are drawn are LeRobot's.
class ACTImpl : public torch::nn::Module {
 public:
  explicit ACTImpl(const ACTConfig& config);

  /// Actions for a normalised batch. In training mode with a VAE, `batch` needs "action" and "action_is_pad"; else the
  /// latent is zero. Throws: Error{kDataset} when an input is missing from the batch.
  ACTOutput forward(const processors::Batch& batch);

  void set_noise_source(nn::NoiseSource source) { noise_ = std::move(source); }
  /// Empty when the policy has no images.
  [[nodiscard]] nn::ResNetBackbone& backbone() { return backbone_; }

 private:
  at::Tensor encode_actions(const processors::Batch& batch);
  at::Tensor image_positions(std::int64_t height, std::int64_t width, const at::TensorOptions& options);
  void reset_parameters();

  ACTConfig config_;
  bool has_state_, has_env_;
  nn::NoiseSource noise_;

  at::Tensor vae_encoder_pos_enc_;
  ACTEncoder vae_encoder_{nullptr};
  nn::Embedding vae_encoder_cls_embed_{nullptr};
  nn::Linear vae_encoder_robot_state_input_proj_{nullptr};
  nn::Linear vae_encoder_action_input_proj_{nullptr};
  nn::Linear vae_encoder_latent_output_proj_{nullptr};
  nn::ResNetBackbone backbone_{nullptr};
  ACTEncoder encoder_{nullptr};
  ACTDecoder decoder_{nullptr};
  nn::Linear encoder_robot_state_input_proj_{nullptr};
  nn::Linear encoder_env_state_input_proj_{nullptr};
  nn::Linear encoder_latent_input_proj_{nullptr};
  nn::Conv2d encoder_img_feat_input_proj_{nullptr};
  nn::Embedding encoder_1d_feature_pos_embed_{nullptr};
  nn::Embedding decoder_pos_embed_{nullptr};
  nn::Linear action_head_{nullptr};

  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> image_positions_;  ///< by height and width
};
LEROBOT_MODULE(ACT);

}  // namespace lerobot::policies
