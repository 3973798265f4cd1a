#include "nn/masked_softmax.hpp"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>

#include <limits>

namespace lerobot::nn {

void masked_softmax_(at::Tensor& weights, float scale, const at::Tensor& key_mask, std::int64_t heads) {
  weights.mul_(scale);
  if (key_mask.defined())
    weights.unflatten(0, {key_mask.size(0), heads})
        .masked_fill_(key_mask.unsqueeze(1).unsqueeze(1), -std::numeric_limits<double>::infinity());
  at::_softmax_out(weights, weights, -1, /*half_to_float=*/false);
}

void softmax_backward_(at::Tensor& grad, const at::Tensor& weights, float scale) {
  grad = at::_softmax_backward_data(grad, weights, -1, weights.scalar_type());
  grad.mul_(scale);
}

}  // namespace lerobot::nn
