#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lerobot::formats {

/// CRC-32C (Castagnoli) of `bytes`; given the CRC of what came before, that of both together.
///
/// Uses the CPU's instruction where there is one (about 10 GB/s a core), else a table.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// CRC-32C of two pieces put together, from the CRC of each; so pieces can be summed in parallel or in any order.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_nbytes);

/// The same sums without the CPU's instruction. For tests.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// Bytes [offset, offset + nbytes) of a file with their sum.
struct StoredRange {
  std::string name;  ///< of the tensor or the part; empty when the range has none
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
  std::uint32_t crc32c = 0;
  friend bool operator==(const StoredRange&, const StoredRange&) = default;
};

}  // namespace lerobot::formats
