#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace lerobot::data {

/// One frame of a dataset with its windows.
struct Sample {
  std::map<std::string, at::Tensor> tensors;   ///< shape-[1] features are 0-dim; a window of T adds a first dimension
  std::map<std::string, std::string> strings;  ///< string features; a null is absent
  std::string task;
};

/// Samples stacked on a new first dimension: "observation.state" [B, S], "action" [B, T, A], "action_is_pad" [B, T],
/// "index" [B] (absolute frame numbers), cameras [B, (T,) C, H, W].
struct Batch {
  std::map<std::string, at::Tensor> tensors;
  std::vector<std::string> task;

  template <typename F>
  void visit_tensors(F&& f) {
    for (auto& [name, tensor] : tensors)
      if (tensor.defined()) f(tensor);
  }
};

/// Turns uint8 camera tensors into float32 in [0, 1] on the device where they lie; other types pass unchanged.
[[nodiscard]] at::Tensor to_float_image(const at::Tensor& image);

/// The same for every camera key of a batch, in place. Keys that the batch lacks are passed over.
void to_float_images(Batch& batch, const std::vector<std::string>& camera_keys);

}  // namespace lerobot::data
