#pragma once

#include <deque>
#include <optional>

#include "lerobot/policies/act_model.hpp"
#include "lerobot/policies/policy.hpp"
#include "lerobot/policies/temporal_ensembler.hpp"

namespace lerobot::policies {

/// ACT as a policy: losses, action queue, optimizer groups. The network is its child `model`.
class ACTPolicyImpl : public Policy {
 public:
  explicit ACTPolicyImpl(const ACTConfig& config);

  /// Loss, `l1_loss` and, in training mode with a VAE, `kld_loss`. Needs "action" [B, C, A] and "action_is_pad" [B, C].
  PolicyOutput forward(const Batch& batch) override;
  at::Tensor predict_action_chunk(const Batch& batch) override;
  at::Tensor select_action(const Batch& batch) override;
  void reset() override;
  /// Group 0: everything but the backbone; group 1: the backbone, with `optimizer_lr_backbone`.
  [[nodiscard]] std::vector<ParamGroup> optim_groups() const override;
  void set_noise_source(nn::NoiseSource source) override;

  [[nodiscard]] const ACTConfig& config() const { return config_; }
  [[nodiscard]] ACT& model() { return model_; }

 private:
  ACTConfig config_;
  ACT model_{nullptr};
  std::deque<at::Tensor> queue_;
  std::optional<TemporalEnsembler> ensembler_;
};
LEROBOT_MODULE(ACTPolicy);

}  // namespace lerobot::policies
