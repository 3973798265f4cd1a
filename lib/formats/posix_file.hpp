#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "lerobot/core/error.hpp"

namespace lerobot::formats {

/// Throws "<path>: cannot <action>: <the system's reason>" for an `errno`.
[[noreturn]] void fail_system(ErrorKind kind, const std::filesystem::path& path, std::string_view action, int error);

/// Owner of a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

/// Opens a regular file for reading and gives its length too.
[[nodiscard]] int open_regular_file(const std::filesystem::path& path, ErrorKind kind, std::uint64_t& nbytes);

/// Writes all of `bytes` at `offset`.
void write_fully(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes,
                 const std::filesystem::path& path, ErrorKind kind);

}  // namespace lerobot::formats
