#include "formats/posix_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace lerobot::formats {

void fail_system(ErrorKind kind, const std::filesystem::path& path, std::string_view action, int error) {
  fail(kind, "{}: cannot {}: {}.", path.string(), action, std::generic_category().message(error));
}

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

int open_regular_file(const std::filesystem::path& path, ErrorKind kind, std::uint64_t& nbytes) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail_system(kind, path, "open for reading", errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int error = errno;
    ::close(descriptor);
    fail_system(kind, path, "look at", error);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail(kind, "{}: is not a regular file.", path.string());
  }
  nbytes = static_cast<std::uint64_t>(status.st_size);
  return descriptor;
}

void write_fully(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes,
                 const std::filesystem::path& path, ErrorKind kind) {
  constexpr std::size_t kMaxPerCall = 1U << 30;  // the kernel takes a little less than 2 GiB at a time
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor, bytes.data(), std::min(bytes.size(), kMaxPerCall), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_system(kind, path, "write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

}  // namespace lerobot::formats
