#include "fsdp/autograd_nodes.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/version.h>

namespace lerobot::fsdp {
namespace {

class PostBackward final : public torch::autograd::Node {
 public:
  explicit PostBackward(std::function<void()> on_backward) : on_backward_(std::move(on_backward)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    on_backward_();
    return std::move(gradients);
  }
  [[nodiscard]] std::string name() const override { return "FsdpPostBackward"; }

 private:
  std::function<void()> on_backward_;
};

// Nodes are shared pointers in LibTorch 2.11 and intrusive ones in 2.15.
auto make_post_backward(std::function<void()> on_backward) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 13)
  return c10::make_intrusive<PostBackward>(std::move(on_backward));
#else
  return std::shared_ptr<PostBackward>(new PostBackward(std::move(on_backward)), torch::autograd::deleteNode);
#endif
}

/// Lives in the callback list of one backward. The list is destroyed without having run when the backward throws.
class EndOfBackward {
 public:
  EndOfBackward(std::function<void()> on_finish, std::function<void()> on_failure)
      : on_finish_(std::move(on_finish)), on_failure_(std::move(on_failure)) {}
  ~EndOfBackward() {
    if (on_failure_) on_failure_();
  }
  EndOfBackward(const EndOfBackward&) = delete;
  EndOfBackward& operator=(const EndOfBackward&) = delete;

  void finish() {
    on_finish_();  // a throw in here leaves the failure to the destructor
    on_failure_ = nullptr;
  }

 private:
  std::function<void()> on_finish_;
  std::function<void()> on_failure_;
};

}  // namespace

void attach_post_backward(const std::vector<at::Tensor*>& inputs, std::function<void()> on_backward) {
  const auto node = make_post_backward(std::move(on_backward));
  torch::autograd::edge_list edges;
  for (const at::Tensor* input : inputs) edges.push_back(torch::autograd::impl::gradient_edge(*input));
  node->set_next_edges(std::move(edges));
  for (at::Tensor* input : inputs) {
    at::Tensor output = input->detach();
    torch::autograd::set_history(output, node);
    *input = std::move(output);
  }
}

void at_end_of_backward(std::function<void()> on_finish, std::function<void()> on_failure) {
  auto end = std::make_shared<EndOfBackward>(std::move(on_finish), std::move(on_failure));
  torch::autograd::Engine::get_default_engine().queue_callback([end] { end->finish(); });
}

}  // namespace lerobot::fsdp
