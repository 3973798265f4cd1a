#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lerobot/optim/optimizer.hpp"

namespace lerobot::optim {

/// One parameter that is due for an update, with its gradient in the layout and dtype of the parameter.
struct Due {
  Parameter* param;
  at::Tensor grad;
  bool is_first;  ///< its state is new: SGD then sets the momentum buffer instead of blending it
};

/// Runs ATen's fused kernels over lists of tensors so that each element is computed in a vector lane.
class FusedUpdate {
 public:
  /// Updates parameters of one group that share device, dtype and `is_first`, and have elements. Step counts must have
  /// been advanced.
  void run(OptimizerKind kind, const GroupOptions& options, const std::vector<Due>& due);

 private:
  struct Lists;
  struct Tail;

  [[nodiscard]] std::vector<Tail> find_tails(const Lists& lists, const std::vector<Due>& due) const;
  void append_padded_tails(Lists& lists, const std::vector<Tail>& tails, const std::vector<Due>& due);
  void copy_back(const Lists& lists, const std::vector<Tail>& tails) const;

  at::Tensor padded_;  ///< [operand, slot * lanes], kept between updates
};

}  // namespace lerobot::optim
