#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/dtype.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/pickle.hpp"

namespace lerobot::formats {

/// A tensor as `torch.save` stored it; the elements lie inside the item.
struct TorchTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;         ///< in elements, from 0 on
  std::span<const std::byte> data;           ///< from the first element to the last; every index of the shape is inside
  [[nodiscard]] bool is_contiguous() const;  ///< row-major without gaps
};

/// Reads an item that holds one tensor: the bytes [offset, offset + length) of a `.distcp` file, or a `.pt` file.
///
/// Throws: Error{kind} naming `where` when the archive, its pickle or the extent of the tensor is not as it must be.
[[nodiscard]] TorchTensor read_torch_tensor(std::span<const std::byte> item, std::string_view where,
                                            ErrorKind kind = ErrorKind::kCheckpoint);

/// Reads an item that holds plain data.
[[nodiscard]] PyValue read_torch_value(std::span<const std::byte> item, std::string_view where,
                                       ErrorKind kind = ErrorKind::kCheckpoint);

/// What stands before and after the elements of a tensor in an item, so that they are written from where they are.
class TorchTensorFrame {
 public:
  TorchTensorFrame(DType dtype, std::span<const std::int64_t> shape);
  [[nodiscard]] const std::string& head() const { return head_; }
  [[nodiscard]] std::uint64_t payload_nbytes() const { return payload_nbytes_; }
  /// Given crc32() of the elements.
  [[nodiscard]] std::string tail(std::uint32_t payload_crc32) const;
  /// Length of the whole item. It depends on dtype and shape alone, so offsets are known before anything is written.
  [[nodiscard]] std::uint64_t nbytes() const { return head_.size() + payload_nbytes_ + tail_nbytes_; }

 private:
  std::string pickle_;
  std::uint64_t payload_nbytes_ = 0;
  std::string head_;
  std::uint64_t tail_nbytes_ = 0;
};

/// A whole item with plain data.
[[nodiscard]] std::string make_torch_value(const PyValue& value);

}  // namespace lerobot::formats
