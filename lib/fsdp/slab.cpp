#include "fsdp/slab.hpp"

#include <array>
#include <cstring>

#include "lerobot/mesh/shard.hpp"

namespace lerobot::fsdp {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t itemsize(at::ScalarType dtype) { return static_cast<std::int64_t>(c10::elementSize(dtype)); }

std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.mutable_data_ptr()); }

/// One parameter in a slab buffer: a block of ranks that hold a full chunk of rows, then at most one that holds fewer.
class Pieces {
 public:
  Pieces(const at::Tensor& slabs, const SlabLayout& layout, std::int64_t offset, RowShape shape, at::ScalarType dtype)
      : slabs_(slabs), layout_(layout), offset_(offset), shape_(shape), dtype_(dtype) {
    chunk_ = mesh::chunk_rows(shape.rows, layout.num_shards);
    num_full_ = chunk_ == 0 ? 0 : shape.rows / chunk_;
  }

  /// Calls `f(piece in the slabs, the same rows of the whole)`, twice at most.
  template <typename F>
  void for_each(const at::Tensor& whole, F&& f) const {
    const std::int64_t chunk_numel = chunk_ * shape_.row_numel;
    if (num_full_ > 0 && chunk_numel > 0)
      f(block(0, num_full_, offset_, chunk_numel), tensor_at(whole, 0, {num_full_, chunk_numel}, whole.scalar_type()));
    const std::int64_t rest_numel = (shape_.rows - num_full_ * chunk_) * shape_.row_numel;
    if (rest_numel > 0)
      f(block(num_full_, 1, offset_, rest_numel),
        tensor_at(whole, num_full_ * chunk_numel * itemsize(whole.scalar_type()), {1, rest_numel}, whole.scalar_type()));
  }

  /// What lies between the parameter's offset and `end_offset`, on all ranks.
  [[nodiscard]] at::Tensor span(std::int64_t end_offset) const {
    return block(0, layout_.num_shards, offset_, (end_offset - offset_) / itemsize(dtype_));
  }

 private:
  [[nodiscard]] at::Tensor block(std::int64_t rank, std::int64_t num_ranks, std::int64_t offset, std::int64_t numel) const {
    at::Tensor tensor = tensor_at(slabs_, rank * layout_.slab_nbytes + offset, {num_ranks, numel}, dtype_);
    const std::array<std::int64_t, 2> sizes{num_ranks, numel};
    const std::array<std::int64_t, 2> strides{layout_.slab_nbytes / itemsize(dtype_), 1};
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef(sizes), at::IntArrayRef(strides));
    return tensor;
  }

  const at::Tensor& slabs_;
  const SlabLayout& layout_;
  std::int64_t offset_;
  RowShape shape_;
  at::ScalarType dtype_;
  std::int64_t chunk_ = 0;
  std::int64_t num_full_ = 0;
};

}  // namespace

SlabLayout slab_layout(std::span<const SlabPart> parts, int num_shards) {
  SlabLayout layout;
  layout.num_shards = num_shards;
  for (const SlabPart& part : parts) {
    layout.offsets.push_back(layout.slab_nbytes);
    const std::int64_t numel = mesh::chunk_rows(part.shape.rows, num_shards) * part.shape.row_numel;
    layout.slab_nbytes += round_up(numel, kSlabAlignment) * itemsize(part.dtype);
  }
  return layout;
}

WholeLayout whole_layout(std::span<const SlabPart> parts) {
  WholeLayout layout;
  for (const SlabPart& part : parts) {
    layout.offsets.push_back(layout.nbytes);
    layout.nbytes += round_up(part.shape.numel() * itemsize(part.dtype), kWholeAlignment);
  }
  return layout;
}

at::Tensor tensor_at(const at::Tensor& buffer, std::int64_t byte_offset, at::IntArrayRef sizes, at::ScalarType dtype) {
  const std::int64_t begin = buffer.storage_offset() * itemsize(buffer.scalar_type()) + byte_offset;
  const auto key = c10::computeDispatchKey(dtype, std::nullopt, buffer.device());
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(buffer.storage()), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_storage_offset(begin / itemsize(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

// On a CPU a memcpy per rank beats one strided `copy_` by the microseconds that the latter takes to set up; units of a
// small policy are a few tens of KB.

void copy_from_slabs(const at::Tensor& whole, const at::Tensor& slabs, const SlabLayout& layout, std::int64_t offset,
                     RowShape shape) {
  if (!whole.is_cpu()) {
    Pieces(slabs, layout, offset, shape, whole.scalar_type())
        .for_each(whole, [](const at::Tensor& piece, const at::Tensor& rows) { rows.copy_(piece); });
    return;
  }
  const std::int64_t row_nbytes = shape.row_numel * itemsize(whole.scalar_type());
  for (int rank = 0; rank < layout.num_shards; ++rank) {
    const mesh::Rows rows = mesh::rows_of_rank(shape.rows, rank, layout.num_shards);
    if (rows.size() * row_nbytes == 0) break;  // and so for all later ranks
    std::memcpy(bytes_of(whole) + rows.begin * row_nbytes, bytes_of(slabs) + rank * layout.slab_nbytes + offset,
                static_cast<std::size_t>(rows.size() * row_nbytes));
  }
}

void copy_to_slabs(const at::Tensor& whole, const at::Tensor& slabs, const SlabLayout& layout, std::int64_t offset,
                   std::int64_t end_offset, RowShape shape, at::ScalarType dtype) {
  if (!whole.is_cpu() || whole.scalar_type() != dtype) {
    const Pieces pieces(slabs, layout, offset, shape, dtype);
    if (shape.numel() * itemsize(dtype) != (end_offset - offset) * layout.num_shards) pieces.span(end_offset).zero_();
    pieces.for_each(whole, [](const at::Tensor& piece, const at::Tensor& rows) { piece.copy_(rows); });
    return;
  }
  const std::int64_t row_nbytes = shape.row_numel * itemsize(dtype);
  for (int rank = 0; rank < layout.num_shards; ++rank) {
    const mesh::Rows rows = mesh::rows_of_rank(shape.rows, rank, layout.num_shards);
    const std::int64_t nbytes = rows.size() * row_nbytes;
    std::byte* to = bytes_of(slabs) + rank * layout.slab_nbytes + offset;
    if (nbytes > 0) std::memcpy(to, bytes_of(whole) + rows.begin * row_nbytes, static_cast<std::size_t>(nbytes));
    std::memset(to + nbytes, 0, static_cast<std::size_t>(end_offset - offset - nbytes));
  }
}

}  // namespace lerobot::fsdp
