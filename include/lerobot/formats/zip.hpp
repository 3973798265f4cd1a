#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/error.hpp"

namespace lerobot::formats {

/// A file of a zip archive; name and data lie inside the archive.
struct ZipEntry {
  std::string_view name;
  std::span<const std::byte> data;
  std::uint32_t crc32 = 0;  ///< as stored; torch may leave it 0
};

/// The files of an archive that stores them uncompressed, as `torch.save` does.
///
/// Every name, offset and length is checked before it is used; archives with compression, encryption or more than one
/// part are refused. Time and memory are linear in the central directory.
/// Throws: Error{kind} naming `where` and the entry.
[[nodiscard]] std::vector<ZipEntry> read_stored_zip(std::span<const std::byte> archive, std::string_view where,
                                                    ErrorKind kind = ErrorKind::kCheckpoint);

/// CRC-32 (of zip and Ethernet) of `bytes`; given the CRC of what came before, that of both together.
[[nodiscard]] std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// CRC-32 of two pieces put together, from the CRC of each.
[[nodiscard]] std::uint32_t crc32_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_nbytes);

/// Lays out an archive of uncompressed files, each beginning at a multiple of 64 as in torch's archives.
///
/// The bytes come out of take() in pieces, and a large file can be written in between by the caller without a copy:
///   add(small) ... begin_stream(name, nbytes); write take(); write nbytes; end_stream(sum); add(small); finish();
///   write take()
class ZipBuilder {
 public:
  void add(std::string_view name, std::string_view data);
  void begin_stream(std::string_view name, std::uint64_t nbytes);
  void end_stream(std::uint32_t crc32);
  /// Appends the directory of the archive.
  void finish();
  /// The bytes since the last take().
  [[nodiscard]] std::string take();

 private:
  struct Entry {
    std::string name;
    std::uint64_t offset, nbytes;
    std::uint32_t crc32;
    std::uint16_t flags;
  };
  void local_header(const Entry& entry);
  [[nodiscard]] std::uint64_t position() const { return taken_ + out_.size(); }

  std::vector<Entry> entries_;
  std::string out_;
  std::uint64_t taken_ = 0;  ///< bytes in front of out_
};

}  // namespace lerobot::formats
