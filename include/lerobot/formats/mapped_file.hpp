#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lerobot/core/error.hpp"

namespace lerobot::formats {

/// A whole file as read-only memory. Pages come from disk when they are touched and can be dropped again by the kernel.
///
/// The bytes stay valid as long as this object, also after the file was deleted or replaced by rename. A file that
/// another process shortens in place must not be read: the kernel answers with SIGBUS.
class MappedFile {
 public:
  /// Throws: Error{kind} with the path and the system's reason; also for anything that is not a regular file.
  explicit MappedFile(const std::filesystem::path& path, ErrorKind kind = ErrorKind::kCheckpoint);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

/// The content of a small file.
///
/// Throws: Error{kind} with the path and the system's reason; also for a file longer than `max_bytes`.
[[nodiscard]] std::string read_small_file(const std::filesystem::path& path, std::uint64_t max_bytes, ErrorKind kind);

}  // namespace lerobot::formats
