#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace lerobot::processors {

/// What a policy is given: tensors by feature name, batch first, and the task of each sample.
///
/// "observation.state" [B, S], "observation.image" [B, C, H, W] float in [0, 1], "action" [B, T, A],
/// "action_is_pad" [B, T] bool, …
struct Batch {
  std::map<std::string, at::Tensor> tensors;
  std::vector<std::string> task;

  template <typename F>
  void visit_tensors(F&& f) {
    for (auto& [name, tensor] : tensors)
      if (tensor.defined()) f(tensor);
  }
};

}  // namespace lerobot::processors
