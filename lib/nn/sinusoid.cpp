#include "lerobot/nn/sinusoid.hpp"

#include <ATen/ops/empty.h>

#include <cmath>
#include <numbers>

#include "lerobot/core/error.hpp"

namespace lerobot::nn {

at::Tensor sinusoid_1d(std::int64_t num_positions, std::int64_t dim) {
  at::Tensor table = at::empty({num_positions, dim}, at::kFloat);
  auto* out = table.mutable_data_ptr<float>();
  for (std::int64_t p = 0; p < num_positions; ++p) {
    for (std::int64_t d = 0; d < dim; ++d) {
      const double exponent = 2.0 * static_cast<double>(d / 2) / static_cast<double>(dim);
      const double angle = static_cast<double>(p) / std::pow(10000.0, exponent);
      *out++ = static_cast<float>(d % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

at::Tensor sinusoid_2d(std::int64_t height, std::int64_t width, std::int64_t dim) {
  if (dim % 2 != 0) fail(ErrorKind::kConfig, "sinusoid_2d: got dim={}; expected an even number of channels.", dim);
  const std::int64_t half = dim / 2;
  // Positions and angles are rounded to float as in Python: near the last row sin() shows every bit of them.
  const auto position = [](std::int64_t i, std::int64_t n) {
    return static_cast<float>(i + 1) / (static_cast<float>(n) + 1e-6F) * static_cast<float>(2.0 * std::numbers::pi);
  };
  const auto wave = [half](float at_position, std::int64_t channel) {
    const float exponent = 2.0F * static_cast<float>(channel / 2) / static_cast<float>(half);
    const float angle = at_position / static_cast<float>(std::pow(10000.0, static_cast<double>(exponent)));
    return static_cast<float>(channel % 2 == 0 ? std::sin(static_cast<double>(angle))
                                               : std::cos(static_cast<double>(angle)));
  };
  at::Tensor map = at::empty({dim, height, width}, at::kFloat);
  auto* out = map.mutable_data_ptr<float>();
  for (std::int64_t c = 0; c < dim; ++c)
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j)
        *out++ = c < half ? wave(position(i, height), c) : wave(position(j, width), c - half);
  return map;
}

}  // namespace lerobot::nn
