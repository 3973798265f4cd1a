#include "policies/act_loss.hpp"

#include "lerobot/nn/fused_node.hpp"

namespace lerobot::policies {
namespace {

using torch::autograd::variable_list;

/// Inputs: predicted. Saved: its gradient for a loss of 1.
struct MaskedL1Node final : nn::FusedNode {
  at::ScalarType type = at::kFloat;
  std::string name() const override { return "LerobotMaskedL1"; }
  variable_list backward(const at::Tensor& grad) override { return {(saved(0) * grad).to(type)}; }
};

/// Inputs and saved: latent.
struct KlDivergenceNode final : nn::FusedNode {
  std::string name() const override { return "LerobotKlDivergence"; }
  variable_list backward(const at::Tensor& grad) override {
    const at::Tensor latent = saved(0);
    const std::int64_t z = latent.size(1) / 2;
    at::Tensor result = latent.to(at::kFloat).clone();  // d/dmu = mu
    at::Tensor log_sigma_x2 = result.narrow(1, z, z);
    log_sigma_x2.exp_().sub_(1).mul_(0.5);
    return {result.mul_(grad / static_cast<double>(latent.size(0))).to(latent.scalar_type())};
  }
};

/// Inputs: latent. Saved: the derivative with respect to log(sigma^2), noise * sigma / 2.
struct SampleLatentNode final : nn::FusedNode {
  std::string name() const override { return "LerobotSampleLatent"; }
  variable_list backward(const at::Tensor& grad) override { return {at::cat({grad, grad * saved(0)}, 1)}; }
};

}  // namespace

at::Tensor masked_l1(const at::Tensor& target_BCA, const at::Tensor& predicted_BCA, const at::Tensor& valid_BC1,
                     const at::Tensor& weight) {
  at::Tensor loss, slope;
  {
    const nn::BelowAutograd guard;
    const at::Tensor error = (predicted_BCA - target_BCA) * valid_BC1;
    loss = error.abs().sum() / weight;
    if (nn::needs_node(predicted_BCA)) slope = error.sign_().div_(weight);
  }
  if (slope.defined()) {
    auto node = nn::attach_node<MaskedL1Node>(loss, predicted_BCA);
    node->type = predicted_BCA.scalar_type();
    node->save(slope);
  }
  return loss;
}

at::Tensor kl_divergence(const at::Tensor& latent_B2Z) {
  at::Tensor result;
  {
    const nn::BelowAutograd guard;
    const at::Tensor latent = latent_B2Z.to(at::kFloat);
    const std::int64_t z = latent.size(1) / 2;
    const at::Tensor mu = latent.narrow(1, 0, z), log_sigma_x2 = latent.narrow(1, z, z);
    const at::Tensor terms = log_sigma_x2.exp().sub_(log_sigma_x2).sub_(1).addcmul_(mu, mu);
    result = terms.sum() * (0.5 / static_cast<double>(latent.size(0)));
  }
  if (nn::needs_node(latent_B2Z)) nn::attach_node<KlDivergenceNode>(result, latent_B2Z)->save(latent_B2Z);
  return result;
}

at::Tensor sample_latent(const at::Tensor& latent_B2Z, const at::Tensor& noise_BZ) {
  at::Tensor sample, scaled;
  {
    const nn::BelowAutograd guard;
    const std::int64_t z = latent_B2Z.size(1) / 2;
    scaled = (latent_B2Z.narrow(1, z, z) / 2).exp_().mul_(noise_BZ);
    sample = latent_B2Z.narrow(1, 0, z) + scaled;
    scaled.mul_(0.5);
  }
  if (nn::needs_node(latent_B2Z)) nn::attach_node<SampleLatentNode>(sample, latent_B2Z)->save(scaled);
  return sample;
}

}  // namespace lerobot::policies
