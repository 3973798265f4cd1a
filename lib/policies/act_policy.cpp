#include "lerobot/policies/act_policy.hpp"

#include "lerobot/core/error.hpp"
#include "policies/act_loss.hpp"

// B batch, C chunk, A action, Z latent.
namespace lerobot::policies {

ACTPolicyImpl::ACTPolicyImpl(const ACTConfig& config) : config_(config) {
  config_.validate();
  model_ = register_module("model", ACT(config_));
  reset();
}

PolicyOutput ACTPolicyImpl::forward(const Batch& batch) {
  const auto action = batch.tensors.find("action"), padding = batch.tensors.find("action_is_pad");
  if (action == batch.tensors.end() || padding == batch.tensors.end())
    fail(ErrorKind::kDataset,
         "act: the batch has no \"{}\", which the loss needs. Read the dataset with action chunks (delta timestamps).",
         action == batch.tensors.end() ? "action" : "action_is_pad");
  const ACTOutput predicted = model_(batch);

  const at::Tensor valid_BC1 = padding->second.logical_not().unsqueeze(-1);
  const double num_actions = static_cast<double>(action->second.size(2));
  const at::Tensor weight = (valid_BC1.sum() * num_actions).clamp_min(1.0).to(at::kFloat);
  PolicyOutput output;
  output.weight = weight;
  output.loss = masked_l1(action->second, predicted.actions_BCA, valid_BC1, weight);
  output.outputs.emplace_back("l1_loss", output.loss.detach());
  if (predicted.latent_B2Z.defined()) {
    const at::Tensor kld = kl_divergence(predicted.latent_B2Z);
    output.outputs.emplace_back("kld_loss", kld.detach());
    output.loss = at::add(output.loss, kld, config_.kl_weight);
  }
  return output;
}

at::Tensor ACTPolicyImpl::predict_action_chunk(const Batch& batch) {
  const torch::NoGradGuard no_grad;
  eval();
  return model_(batch).actions_BCA;
}

at::Tensor ACTPolicyImpl::select_action(const Batch& batch) {
  if (ensembler_) return ensembler_->update(predict_action_chunk(batch));
  if (queue_.empty()) {
    const at::Tensor chunk_BCA = predict_action_chunk(batch);
    for (std::int64_t t = 0; t < config_.n_action_steps; ++t) queue_.push_back(chunk_BCA.select(1, t));
  }
  at::Tensor action_BA = std::move(queue_.front());
  queue_.pop_front();
  return action_BA;
}

void ACTPolicyImpl::reset() {
  queue_.clear();
  if (config_.temporal_ensemble_coeff) ensembler_.emplace(*config_.temporal_ensemble_coeff, config_.chunk_size);
}

std::vector<ParamGroup> ACTPolicyImpl::optim_groups() const {
  std::vector<ParamGroup> groups(2);
  groups[1].lr = config_.optimizer_lr_backbone;
  for (const auto& parameter : named_parameters())
    if (parameter.value().requires_grad())
      groups[parameter.key().starts_with("model.backbone") ? 1 : 0].names.push_back(parameter.key());
  return groups;
}

void ACTPolicyImpl::set_noise_source(nn::NoiseSource source) { model_->set_noise_source(std::move(source)); }

}  // namespace lerobot::policies
