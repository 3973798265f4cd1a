#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace lerobot::nn {

/// Gives a tensor of independent standard normal numbers of this shape and type: `at::randn` by default, recorded
/// numbers in a replay. Called in the order in which LeRobot (Python) draws.
using NoiseSource = std::function<at::Tensor(at::IntArrayRef shape, const at::TensorOptions& options)>;

}  // namespace lerobot::nn
