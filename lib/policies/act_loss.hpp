#pragma once

#include <ATen/core/Tensor.h>

// The arithmetic of ACT's loss, as one autograd node per term. B batch, C chunk, A action, Z latent.
namespace lerobot::policies {

/// sum(|target - predicted| * valid) / weight, a scalar. `valid_BC1` is boolean, `weight` a scalar tensor.
[[nodiscard]] at::Tensor masked_l1(const at::Tensor& target_BCA, const at::Tensor& predicted_BCA,
                                   const at::Tensor& valid_BC1, const at::Tensor& weight);

/// Mean over the batch of the divergence of N(mu, sigma^2) from N(0, 1); `latent_B2Z` is mu, then log(sigma^2).
[[nodiscard]] at::Tensor kl_divergence(const at::Tensor& latent_B2Z);

/// mu + sigma * noise [B, Z], a sample of the latent.
[[nodiscard]] at::Tensor sample_latent(const at::Tensor& latent_B2Z, const at::Tensor& noise_BZ);

}  // namespace lerobot::policies
