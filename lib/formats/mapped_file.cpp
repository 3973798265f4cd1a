#include "lerobot/formats/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "formats/posix_file.hpp"

namespace lerobot::formats {

MappedFile::MappedFile(const std::filesystem::path& path, ErrorKind kind) : path_(path) {
  std::uint64_t nbytes = 0;
  const FileDescriptor file(open_regular_file(path, kind, nbytes));
  if (nbytes == 0) return;  // an empty mapping is an error to the kernel
  void* const start = ::mmap(nullptr, nbytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) fail_system(kind, path, "map into memory", errno);
  bytes_ = {static_cast<const std::byte*>(start), nbytes};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

std::string read_small_file(const std::filesystem::path& path, std::uint64_t max_bytes, ErrorKind kind) {
  std::uint64_t nbytes = 0;
  const FileDescriptor file(open_regular_file(path, kind, nbytes));
  if (nbytes > max_bytes) fail(kind, "{}: {} bytes; at most {} are read.", path.string(), nbytes, max_bytes);
  std::string text(nbytes, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(kind, path, "read", errno);
    if (got == 0)
      fail(kind, "{}: {} bytes are left of {}; the file was shortened while it was read.", path.string(), have, nbytes);
    have += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace lerobot::formats
