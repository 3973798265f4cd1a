#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "lerobot/core/error.hpp"

// Steps of the autograd graph that are written by hand: one node where composed ATen calls would make a dozen.
//
//   { const BelowAutograd guard; output = ...; }                        the forward, recording nothing
//   if (needs_node(x, weight)) {
//     auto node = attach_node<MyNode>(output, x, weight);               MyNode derives from FusedNode
//     node->save(x);                                                    saved(0) in MyNode::backward
//   }
//
// Gradients reach parameters through their AccumulateGrad as always, so reducers and hooks see them.
namespace lerobot::nn {

/// Calls inside go straight to the kernels: no autograd, no autocast.
struct BelowAutograd {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

/// A node with one output. A subclass saves what it needs, and computes the gradients of the inputs in the order in
/// which `attach` was given them; gradients that nobody asked for may be left undefined.
class FusedNode : public torch::autograd::Node {
 public:
  void release_variables() override {
    for (auto& variable : saved_) variable.reset_data();
  }
  /// Keeps a tensor that is not the output.
  void save(const at::Tensor& tensor) { saved_.emplace_back(tensor, /*is_output=*/false); }

 protected:
  virtual torch::autograd::variable_list backward(const at::Tensor& grad) = 0;
  [[nodiscard]] at::Tensor saved(std::size_t i) const { return saved_[i].unpack(); }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) final {
    if (at::GradMode::is_enabled())
      fail(ErrorKind::kInternal,
           "{}: gradients of gradients are not available here; run the backward without create_graph.", name());
    if (!grads[0].defined()) return torch::autograd::variable_list(num_outputs());
    const BelowAutograd guard;
    return backward(grads[0]);
  }

  std::vector<torch::autograd::SavedVariable> saved_;
};

namespace detail {

/// Nodes are held by shared_ptr before LibTorch 2.12 and by intrusive_ptr since.
template <typename T>
auto make_node() {
  using Holder = decltype(torch::autograd::Edge::function);
  if constexpr (std::is_same_v<Holder, std::shared_ptr<torch::autograd::Node>>) {
    return std::shared_ptr<T>(new T(), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<T>();
  }
}

}  // namespace detail

/// True when a call with these inputs has to record a node.
template <typename... Tensors>
[[nodiscard]] bool needs_node(const Tensors&... inputs) {
  return at::GradMode::is_enabled() && ((inputs.defined() && inputs.requires_grad()) || ...);
}

/// Makes `output` the result of a new node `T` over `inputs` and returns the node, for the caller to fill.
template <typename T, typename... Tensors>
auto attach_node(const at::Tensor& output, const Tensors&... inputs) {
  auto node = detail::make_node<T>();
  node->set_next_edges(torch::autograd::collect_next_edges(inputs...));
  torch::autograd::set_history(output, node);
  return node;
}

}  // namespace lerobot::nn
