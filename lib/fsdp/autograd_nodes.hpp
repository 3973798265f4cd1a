#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace lerobot::fsdp {

/// One call of a unit that autograd has recorded. It ends when its backward has run, or when its graph is dropped.
class RecordedCall {
 public:
  explicit RecordedCall(std::function<void()> on_end) : on_end_(std::move(on_end)) {}
  ~RecordedCall() { end(); }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

  /// The second and later times (backward with retain_graph) do nothing.
  void end() {
    if (on_end_) std::exchange(on_end_, nullptr)();
  }

 private:
  std::function<void()> on_end_;
};

/// Puts one node behind all `inputs`, in place: when their gradients are known, so are those of all parameters used
/// after this point, and `on_backward` runs. Inputs must require gradients.
///
/// Autograd runs ready nodes newest first, and everything that the unit does is newer than this node. It is a plain
/// node, not a `torch::autograd::Function`: that one cuts the graph in silence when it is handed a vector of tensors.
void attach_post_backward(const std::vector<at::Tensor*>& inputs, std::function<void()> on_backward);

/// Runs `on_finish` when the backward that is under way has succeeded, `on_failure` when it ends in any other way.
///
/// Call it from within a backward.
void at_end_of_backward(std::function<void()> on_finish, std::function<void()> on_failure);

}  // namespace lerobot::fsdp
