#pragma once

#include "nn/cpu_kernels.hpp"

namespace lerobot::nn {

/// The mask of one dropout call with 0 < p < 1: draws its key from the default CPU generator. With p <= 0, the mask
/// that keeps everything, and nothing is drawn.
[[nodiscard]] cpu::DropoutMask draw_mask(double p);

}  // namespace lerobot::nn
