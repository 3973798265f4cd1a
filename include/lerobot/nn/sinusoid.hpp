#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lerobot::nn {

/// Sinusoidal position table [num_positions, dim] in float32: sin in even, cos in odd columns.
///
/// Angle of position p, column d: p / 10000^(2 * floor(d / 2) / dim), computed in double.
/// Source: "Attention Is All You Need", section 3.5, as LeRobot's ACT lays it out.
[[nodiscard]] at::Tensor sinusoid_1d(std::int64_t num_positions, std::int64_t dim);

/// Sinusoidal positions of an H x W map [dim, H, W] in float32; the first half of the channels is for the row, the
/// second for the column. `dim` is even.
///
/// Source: the 2-D embedding of DETR, as LeRobot's ACT uses it: positions (i + 1) / (H + 1e-6) * 2 pi.
[[nodiscard]] at::Tensor sinusoid_2d(std::int64_t height, std::int64_t width, std::int64_t dim);

}  // namespace lerobot::nn
