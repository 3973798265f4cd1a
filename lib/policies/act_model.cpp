#include "lerobot/policies/act_model.hpp"

#include <torch/nn/init.h>

#include "lerobot/core/error.hpp"
#include "lerobot/nn/linear.hpp"
#include "lerobot/nn/sinusoid.hpp"
#include "policies/act_loss.hpp"

namespace lerobot::policies {
namespace {

const at::Tensor& input(const processors::Batch& batch, const std::string& name) {
  const auto found = batch.tensors.find(name);
  if (found == batch.tensors.end())
    fail(ErrorKind::kDataset,
         "act: the batch has no \"{}\". The policy was built for it; check the dataset's features "
         "and --rename_map.",
         name);
  return found->second;
}

}  // namespace

ACTImpl::ACTImpl(const ACTConfig& config)
    : config_(config), has_state_(config.state_feature() != nullptr), has_env_(config.env_feature() != nullptr) {
  const std::int64_t dim = config.dim_model, actions = config.action_feature().shape[0];
  const bool has_images = !config.image_features().empty();
  const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
    return register_module(name, nn::Linear(in, out));
  };
  if (config.use_vae) {
    vae_encoder_ = register_module("vae_encoder", ACTEncoder(config, config.n_vae_encoder_layers));
    vae_encoder_cls_embed_ = register_module("vae_encoder_cls_embed", nn::Embedding(1, dim));
    if (has_state_)
      vae_encoder_robot_state_input_proj_ =
          linear("vae_encoder_robot_state_input_proj", config.state_feature()->shape[0], dim);
    vae_encoder_action_input_proj_ = linear("vae_encoder_action_input_proj", actions, dim);
    vae_encoder_latent_output_proj_ = linear("vae_encoder_latent_output_proj", dim, 2 * config.latent_dim);
    const std::int64_t tokens = 1 + (has_state_ ? 1 : 0) + config.chunk_size;
    vae_encoder_pos_enc_ = register_buffer("vae_encoder_pos_enc", nn::sinusoid_1d(tokens, dim).unsqueeze(0));
  }
  if (has_images)
    backbone_ = register_module("backbone",
                                nn::ResNetBackbone(config.vision_backbone, config.replace_final_stride_with_dilation));
  encoder_ = register_module("encoder", ACTEncoder(config, config.n_encoder_layers));
  decoder_ = register_module("decoder", ACTDecoder(config));
  if (has_state_)
    encoder_robot_state_input_proj_ = linear("encoder_robot_state_input_proj", config.state_feature()->shape[0], dim);
  if (has_env_)
    encoder_env_state_input_proj_ = linear("encoder_env_state_input_proj", config.env_feature()->shape[0], dim);
  encoder_latent_input_proj_ = linear("encoder_latent_input_proj", config.latent_dim, dim);
  if (has_images)
    encoder_img_feat_input_proj_ = register_module(
        "encoder_img_feat_input_proj", nn::Conv2d(torch::nn::Conv2dOptions(backbone_->out_channels(), dim, 1)));
  const std::int64_t single_tokens = 1 + (has_state_ ? 1 : 0) + (has_env_ ? 1 : 0);
  encoder_1d_feature_pos_embed_ = register_module("encoder_1d_feature_pos_embed", nn::Embedding(single_tokens, dim));
  decoder_pos_embed_ = register_module("decoder_pos_embed", nn::Embedding(config.chunk_size, dim));
  action_head_ = linear("action_head", dim, actions);
  reset_parameters();
}

void ACTImpl::reset_parameters() {
  const auto xavier = [](const std::vector<at::Tensor>& parameters) {
    for (const at::Tensor& parameter : parameters)
      if (parameter.dim() > 1) torch::nn::init::xavier_uniform_(parameter);
  };
  xavier(encoder_->parameters());
  xavier(decoder_->parameters());
}

at::Tensor ACTImpl::encode_actions(const processors::Batch& batch) {
  const at::Tensor& action_BCA = input(batch, "action");
  const at::Tensor& padding_BC = input(batch, "action_is_pad");
  const std::int64_t batch_size = action_BCA.size(0), dim = config_.dim_model;
  std::vector<at::Tensor> tokens{vae_encoder_cls_embed_->weight.unsqueeze(0).expand({batch_size, 1, dim})};
  if (has_state_)
    tokens.push_back(nn::linear(input(batch, "observation.state").unsqueeze(1), vae_encoder_robot_state_input_proj_));
  tokens.push_back(nn::linear(action_BCA, vae_encoder_action_input_proj_));
  const std::int64_t unpadded = has_state_ ? 2 : 1;
  const at::Tensor padding_BS = at::constant_pad_nd(padding_BC, {unpadded, 0}, 0);
  const at::Tensor encoded_B1D = vae_encoder_(at::cat(tokens, 1), vae_encoder_pos_enc_[0], padding_BS, 1);
  return nn::linear(encoded_B1D.squeeze(1), vae_encoder_latent_output_proj_);
}

at::Tensor ACTImpl::image_positions(std::int64_t height, std::int64_t width, const at::TensorOptions& options) {
  at::Tensor& table = image_positions_[{height, width}];
  if (!table.defined() || table.device() != options.device() || table.scalar_type() != options.dtype().toScalarType())
    table = nn::sinusoid_2d(height, width, config_.dim_model).flatten(1).t().contiguous().to(options);  // [H * W, D]
  return table;
}

ACTOutput ACTImpl::forward(const processors::Batch& batch) {
  ACTOutput output;
  at::Tensor latent_BZ;
  if (config_.use_vae && is_training()) {
    if (!batch.tensors.contains("action"))
      fail(ErrorKind::kDataset,
           "act: the batch has no \"action\", which the variational encoder needs in training mode. Give actions, or "
           "call eval() first.");
    output.latent_B2Z = encode_actions(batch);
    const std::vector<std::int64_t> shape{output.latent_B2Z.size(0), config_.latent_dim};
    const at::TensorOptions options = output.latent_B2Z.options();
    latent_BZ = sample_latent(output.latent_B2Z, noise_ ? noise_(shape, options) : at::randn(shape, options));
  } else {
    const at::Tensor& any = input(batch, has_env_ ? config_.env_feature()->name : config_.image_features()[0]->name);
    latent_BZ = at::zeros({any.size(0), config_.latent_dim}, any.options().dtype(at::kFloat));
  }

  std::vector<at::Tensor> tokens{nn::linear(latent_BZ.unsqueeze(1), encoder_latent_input_proj_)};
  if (has_state_)
    tokens.push_back(nn::linear(input(batch, "observation.state").unsqueeze(1), encoder_robot_state_input_proj_));
  if (has_env_)
    tokens.push_back(nn::linear(input(batch, config_.env_feature()->name).unsqueeze(1), encoder_env_state_input_proj_));
  std::vector<at::Tensor> positions{encoder_1d_feature_pos_embed_->weight};
  for (const processors::PolicyFeature* image : config_.image_features()) {
    const at::Tensor map_BDHW = encoder_img_feat_input_proj_(backbone_(input(batch, image->name)));
    tokens.push_back(map_BDHW.flatten(2).transpose(1, 2));
    positions.push_back(
        image_positions(map_BDHW.size(2), map_BDHW.size(3), encoder_1d_feature_pos_embed_->weight.options()));
  }
  const at::Tensor pos_SD = positions.size() == 1 ? positions[0] : at::cat(positions, 0);
  const at::Tensor memory_BSD = encoder_(at::cat(tokens, 1), pos_SD, std::nullopt, std::nullopt);
  output.actions_BCA = nn::linear(decoder_(memory_BSD, pos_SD, decoder_pos_embed_->weight), action_head_);
  return output;
}

}  // namespace lerobot::policies
