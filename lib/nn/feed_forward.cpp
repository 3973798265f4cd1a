#include "lerobot/nn/feed_forward.hpp"

#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/nn/dropout.hpp"
#include "lerobot/nn/fused_node.hpp"
#include "nn/compute_type.hpp"
#include "nn/cpu_parts.hpp"
#include "nn/dropout_key.hpp"
#include "nn/parallel.hpp"

namespace lerobot::nn {
namespace {

using torch::autograd::variable_list;

/// relu and dropout of a contiguous tensor, in place.
void relu_dropout_(const cpu::DropoutMask& mask, at::Tensor& x) {
  void* data = x.mutable_data_ptr();
  const bool is_float = x.scalar_type() == at::kFloat;
  parallel_for(x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (is_float)
      cpu::relu_dropout(mask, begin, end - begin, static_cast<float*>(data) + begin);
    else
      cpu::relu_dropout(mask, begin, end - begin, static_cast<cpu::Bf16*>(data) + begin);
  });
}

void relu_dropout_backward_(float scale, const at::Tensor& out, at::Tensor& grad) {
  const void* from = out.const_data_ptr();
  void* data = grad.mutable_data_ptr();
  const bool is_float = out.scalar_type() == at::kFloat;
  parallel_for(out.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (is_float)
      cpu::relu_dropout_backward(scale, end - begin, static_cast<const float*>(from) + begin,
                                 static_cast<float*>(data) + begin);
    else
      cpu::relu_dropout_backward(scale, end - begin, static_cast<const cpu::Bf16*>(from) + begin,
                                 static_cast<cpu::Bf16*>(data) + begin);
  });
}

/// linear2(dropout(relu(linear1(x)))) as one node. Inputs and saved: x, weight1, bias1, weight2, bias2 (biases not
/// saved).
struct FeedForwardNode final : FusedNode {
  at::ScalarType type = at::kFloat;
  float scale = 1.0F;
  at::Tensor hidden;  ///< after relu and dropout; positive where both let it through

  std::string name() const override { return "LerobotFeedForward"; }
  void release_variables() override {
    FusedNode::release_variables();
    hidden.reset();
  }

  variable_list backward(const at::Tensor& grad_output) override {
    if (!hidden.defined()) TORCH_CHECK(false, torch::autograd::ERR_BACKWARD_TWICE);
    const at::Tensor x = saved(0);
    const at::Tensor grad = grad_output.to(type).reshape({hidden.size(0), -1});
    variable_list result(5);
    if (task_should_compute_output(3)) result[3] = at::mm(grad.t(), hidden);
    if (task_should_compute_output(4)) result[4] = column_sums(grad);
    at::Tensor grad_hidden = at::mm(grad, saved(2).to(type));
    relu_dropout_backward_(scale, hidden, grad_hidden);
    if (task_should_compute_output(1)) result[1] = at::mm(grad_hidden.t(), x.to(type).reshape({hidden.size(0), -1}));
    if (task_should_compute_output(2)) result[2] = column_sums(grad_hidden);
    if (task_should_compute_output(0)) result[0] = at::mm(grad_hidden, saved(1).to(type)).view(x.sizes());
    return result;
  }
};

at::Tensor relu_feed_forward(const at::Tensor& x, Linear& linear1, Linear& linear2, double p) {
  const at::ScalarType type = compute_type(x);
  const cpu::DropoutMask mask = draw_mask(p);
  const at::Tensor &weight1 = linear1->weight, &bias1 = linear1->bias, &weight2 = linear2->weight,
                   &bias2 = linear2->bias;
  at::Tensor hidden, output;
  {
    const BelowAutograd guard;
    hidden = at::addmm(bias1.to(type), x.to(type).reshape({-1, x.size(-1)}), weight1.to(type).t());
    relu_dropout_(mask, hidden);
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = weight2.size(0);
    output = at::addmm(bias2.to(type), hidden, weight2.to(type).t()).view(shape);
  }
  if (needs_node(x, weight1, bias1, weight2, bias2)) {
    auto node = attach_node<FeedForwardNode>(output, x, weight1, bias1, weight2, bias2);
    node->type = type;
    node->scale = mask.scale;
    node->hidden = std::move(hidden);
    for (const at::Tensor& tensor : {x, weight1, weight2}) node->save(tensor);
  }
  return output;
}

/// layer_norm(residual + dropout(x)) as one node. Inputs: residual, x, weight, bias. Saved: the sum, mean, rstd,
/// weight, bias.
struct AddDropoutNormNode final : FusedNode {
  cpu::DropoutMask mask;
  at::ScalarType x_type = at::kFloat;

  std::string name() const override { return "LerobotAddDropoutNorm"; }
  variable_list backward(const at::Tensor& grad_output) override {
    const at::Tensor sum = saved(0), weight = saved(3), bias = saved(4);
    const bool wants_sum = task_should_compute_output(0) || task_should_compute_output(1);
    const std::array<bool, 3> wanted{wants_sum, task_should_compute_output(2), task_should_compute_output(3)};
    auto [grad_sum, grad_weight, grad_bias] = at::native_layer_norm_backward(
        grad_output.contiguous(), sum, weight.sizes(), saved(1), saved(2), weight, bias, wanted);
    at::Tensor grad_x;
    if (task_should_compute_output(1)) {
      const at::Tensor grad = grad_sum.to(x_type);
      grad_x = mask.threshold == 0 ? grad : apply_mask(mask, grad);
    }
    return {grad_sum, grad_x, grad_weight, grad_bias};
  }
};

}  // namespace

Activation parse_activation(std::string_view name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "glu") return Activation::kGlu;
  fail(ErrorKind::kConfig, "policy.feedforward_activation: got \"{}\"; expected relu, gelu or glu.", name);
}

at::Tensor feed_forward(const at::Tensor& x, Linear& linear1, Linear& linear2, Activation activation, double p) {
  if (activation == Activation::kRelu && p < 1.0 && !linear1->has_hooks() && !linear2->has_hooks() && has_fused_cpu(x))
    return relu_feed_forward(x, linear1, linear2, p);
  at::Tensor hidden = linear1(x);
  switch (activation) {
    case Activation::kRelu:
      hidden = torch::relu(hidden);
      break;
    case Activation::kGelu:
      hidden = torch::gelu(hidden);
      break;
    case Activation::kGlu:
      hidden = torch::glu(hidden);
      break;
  }
  return linear2(dropout(hidden, p));
}

at::Tensor add_dropout_norm(const at::Tensor& residual, const at::Tensor& x, double p, LayerNorm& norm) {
  const bool fused = p < 1.0 && !norm->has_hooks() && has_fused_cpu(residual) && has_fused_cpu(x) &&
                     residual.scalar_type() == norm->weight.scalar_type() && residual.sizes() == x.sizes();
  if (!fused) return norm(add_dropout(residual, x, p));

  const at::Tensor &weight = norm->weight, &bias = norm->bias;
  const cpu::DropoutMask mask = draw_mask(p);
  at::Tensor sum, output, mean, rstd;
  {
    const BelowAutograd guard;
    sum = at::add(residual, mask.threshold == 0 ? x : apply_mask(mask, x)).to(residual.scalar_type());
    std::tie(output, mean, rstd) = at::native_layer_norm(sum, weight.sizes(), weight, bias, norm->options.eps());
  }
  if (needs_node(residual, x, weight, bias)) {
    auto node = attach_node<AddDropoutNormNode>(output, residual, x, weight, bias);
    node->mask = mask;
    node->x_type = x.scalar_type();
    for (const at::Tensor& tensor : {sum, mean, rstd, weight, bias}) node->save(tensor);
  }
  return output;
}

}  // namespace lerobot::nn
