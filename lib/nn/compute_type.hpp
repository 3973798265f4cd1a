#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>

namespace lerobot::nn {

/// The type in which a matrix product of `x` runs here: autocast's, where it is on, else that of `x`.
inline at::ScalarType compute_type(const at::Tensor& x) {
  const at::DeviceType device = x.device().type();
  return at::autocast::is_autocast_enabled(device) && x.is_floating_point() && x.scalar_type() != at::kDouble
             ? at::autocast::get_autocast_dtype(device)
             : x.scalar_type();
}

/// True where the hand-written CPU nodes can compute on `x`.
inline bool has_fused_cpu(const at::Tensor& x) {
  if (!x.is_cpu() || x.layout() != at::kStrided) return false;
  const at::ScalarType type = compute_type(x);
  return type == at::kFloat || type == at::kBFloat16;
}

}  // namespace lerobot::nn
