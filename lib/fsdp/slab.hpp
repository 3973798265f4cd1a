#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace lerobot::fsdp {

// A *slab* holds one rank's rows of several parameters, one after the other. The slabs of all ranks have one layout, so
// that one collective moves a whole unit: a *slab buffer* has the slab of rank 0, that of rank 1, and so on.

/// Parameters start at multiples of this many elements in a slab, and the gap is zero: 64 bytes in float32, so that an
/// optimizer may step whole vectors.
inline constexpr std::int64_t kSlabAlignment = 16;
/// Whole parameters start where an allocator would have put them: products of misaligned matrices round differently.
inline constexpr std::int64_t kWholeAlignment = 64;  // bytes

/// A parameter as rows of dim 0.
struct RowShape {
  std::int64_t rows = 0;
  std::int64_t row_numel = 0;
  [[nodiscard]] std::int64_t numel() const { return rows * row_numel; }
};

struct SlabPart {
  RowShape shape;  ///< of the whole parameter
  at::ScalarType dtype;
};

/// Where parts begin. Offsets are bytes.
struct SlabLayout {
  std::vector<std::int64_t> offsets;  ///< in a slab, per part
  std::int64_t slab_nbytes = 0;
  int num_shards = 1;
};
[[nodiscard]] SlabLayout slab_layout(std::span<const SlabPart> parts, int num_shards);

/// The same for parameters as they lie in memory when whole.
struct WholeLayout {
  std::vector<std::int64_t> offsets;
  std::int64_t nbytes = 0;
};
[[nodiscard]] WholeLayout whole_layout(std::span<const SlabPart> parts);

/// A contiguous tensor at a byte offset of a storage, with a version counter of its own and no gradient.
[[nodiscard]] at::Tensor tensor_at(const at::Tensor& buffer, std::int64_t byte_offset, at::IntArrayRef sizes,
                                   at::ScalarType dtype);

/// Assembles a whole contiguous parameter from the pieces that lie at `offset` of every slab.
void copy_from_slabs(const at::Tensor& whole, const at::Tensor& slabs, const SlabLayout& layout, std::int64_t offset,
                     RowShape shape);

/// Deals a whole contiguous parameter to all slabs, converting to `dtype`, and zeroes what no row falls on, up to
/// `end_offset` of each slab.
void copy_to_slabs(const at::Tensor& whole, const at::Tensor& slabs, const SlabLayout& layout, std::int64_t offset,
                   std::int64_t end_offset, RowShape shape, at::ScalarType dtype);

}  // namespace lerobot::fsdp
