#include "lerobot/nn/linear.hpp"

#include "lerobot/nn/fused_node.hpp"
#include "nn/compute_type.hpp"
#include "nn/cpu_parts.hpp"

namespace lerobot::nn {
namespace {

/// Inputs: x, weight, bias. Saved: x, weight.
struct LinearNode final : FusedNode {
  at::ScalarType type = at::kFloat;
  std::string name() const override { return "LerobotLinear"; }
  torch::autograd::variable_list backward(const at::Tensor& grad_output) override {
    const at::Tensor x = saved(0), weight = saved(1);
    const at::Tensor grad = grad_output.to(type).reshape({-1, weight.size(0)});
    torch::autograd::variable_list result(3);
    if (task_should_compute_output(0)) result[0] = at::mm(grad, weight.to(type)).view(x.sizes());
    if (task_should_compute_output(1)) result[1] = at::mm(grad.t(), x.to(type).reshape({-1, weight.size(1)}));
    if (task_should_compute_output(2)) result[2] = column_sums(grad);
    return result;
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, Linear& layer) {
  const at::Tensor &weight = layer->weight, &bias = layer->bias;
  if (layer->has_hooks() || !bias.defined() || !has_fused_cpu(x)) return layer(x);
  const at::ScalarType type = compute_type(x);
  at::Tensor output;
  {
    const BelowAutograd guard;
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    output = at::addmm(bias.to(type), x.to(type).reshape({-1, weight.size(1)}), weight.to(type).t()).view(shape);
  }
  if (needs_node(x, weight, bias)) {
    auto node = attach_node<LinearNode>(output, x, weight, bias);
    node->type = type;
    node->save(x);
    node->save(weight);
  }
  return output;
}

}  // namespace lerobot::nn
