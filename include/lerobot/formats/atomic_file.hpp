#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "lerobot/core/error.hpp"

namespace lerobot::formats {

/// A file that appears under its name only when it is complete and on disk.
///
/// Bytes go to the sibling `<name>.tmp`; commit() syncs it and renames it. Without a commit the sibling is removed.
class AtomicFile {
 public:
  /// Throws: Error{kind} with the path and the system's reason.
  explicit AtomicFile(std::filesystem::path path, ErrorKind kind = ErrorKind::kCheckpoint);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  /// Writes `bytes` behind everything that append() wrote before.
  void append(std::span<const std::byte> bytes);

  /// Writes `bytes` at `offset`; the file grows as needed.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Makes the file appear: sync, close, rename, sync of the folder. An older file of that name is replaced.
  void commit();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Number of bytes that append() wrote, which is where the next ones go.
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  ErrorKind kind_;
  int descriptor_ = -1;
  std::uint64_t end_ = 0;
};

/// Replaces the file `path` by one with these bytes; at every moment, a crash included, it is the old one or the new.
///
/// Throws: Error{kind} with the path and the system's reason.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           ErrorKind kind = ErrorKind::kCheckpoint);
void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           ErrorKind kind = ErrorKind::kCheckpoint);

/// Waits until the bytes of a file are on disk.
void sync_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::kCheckpoint);

/// Waits until the names in a folder are on disk. File systems that cannot sync folders are taken as they are.
void sync_directory(const std::filesystem::path& path, ErrorKind kind = ErrorKind::kCheckpoint);

/// Makes `link` a symbolic link to `target`, in one step: whoever looks sees the old link or the new one.
///
/// `target` is stored as given; a bare name makes a link that survives moving the folder.
/// Throws: Error{kind} containing "file exists" when `link` is something other than a symbolic link (nothing is
///         deleted); with the system's reason otherwise.
void replace_symlink(const std::filesystem::path& link, const std::filesystem::path& target,
                     ErrorKind kind = ErrorKind::kCheckpoint);

}  // namespace lerobot::formats
