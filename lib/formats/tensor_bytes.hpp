#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "lerobot/core/dtype.hpp"

namespace lerobot::formats {

/// The most dimensions that a tensor in a file may have.
inline constexpr std::size_t kMaxDims = 64;

/// The number of bytes of a dense tensor; none when it, or the strides of an empty one, would overflow 63 bits, or when
/// a size is negative.
constexpr std::optional<std::uint64_t> tensor_nbytes(DType dtype, std::span<const std::int64_t> shape) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  bool empty = false;
  std::uint64_t nbytes = itemsize(dtype);
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
    } else {
      if (nbytes > kMax / static_cast<std::uint64_t>(size)) return std::nullopt;
      nbytes *= static_cast<std::uint64_t>(size);
    }
  }
  return empty ? 0 : nbytes;
}

static_assert(tensor_nbytes(DType::kF32, {}) == 4);

}  // namespace lerobot::formats
