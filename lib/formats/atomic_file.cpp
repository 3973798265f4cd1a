#include "lerobot/formats/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "formats/posix_file.hpp"

namespace lerobot::formats {
namespace {

std::filesystem::path parent_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

void sync_descriptor(int descriptor, const std::filesystem::path& path, ErrorKind kind) {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR) fail_system(kind, path, "sync to disk", errno);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path, ErrorKind kind)
    : path_(std::move(path)), temporary_(path_), kind_(kind) {
  temporary_ += ".tmp";
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_system(kind_, temporary_, "create", errno);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      kind_(other.kind_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      end_(other.end_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  write_at(end_, bytes);
  end_ += bytes.size();
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (descriptor_ < 0) fail(ErrorKind::kInternal, "{}: written after its commit.", path_.string());
  write_fully(descriptor_, offset, bytes, temporary_, kind_);
}

void AtomicFile::commit() {
  if (descriptor_ < 0) fail(ErrorKind::kInternal, "{}: committed twice.", path_.string());
  sync_descriptor(descriptor_, temporary_, kind_);
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail_system(kind_, temporary_, "close", error);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail_system(kind_, path_, "rename its temporary to it", error);
  }
  sync_directory(parent_of(path_), kind_);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes, ErrorKind kind) {
  AtomicFile file(path, kind);
  file.append(bytes);
  file.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text, ErrorKind kind) {
  write_file_atomically(path, std::as_bytes(std::span(text)), kind);
}

void sync_file(const std::filesystem::path& path, ErrorKind kind) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_system(kind, path, "open for syncing", errno);
  sync_descriptor(file.get(), path, kind);
}

void sync_directory(const std::filesystem::path& path, ErrorKind kind) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) fail_system(kind, path, "open for syncing", errno);
  while (::fsync(folder.get()) != 0) {
    if (errno == EINVAL || errno == ENOTSUP) return;
    if (errno != EINTR) fail_system(kind, path, "sync to disk", errno);
  }
}

void replace_symlink(const std::filesystem::path& link, const std::filesystem::path& target, ErrorKind kind) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(link, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_symlink(status))
    fail(kind, "{}: file exists and is not a symbolic link, so it is not replaced by one to {}. Move it away.",
         link.string(), target.string());
  std::filesystem::path temporary = link;
  temporary += ".tmp";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) fail_system(kind, temporary, "remove", errno);
  if (::symlink(target.c_str(), temporary.c_str()) != 0) fail_system(kind, temporary, "create a symbolic link", errno);
  if (::rename(temporary.c_str(), link.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail_system(kind, link, "replace the symbolic link", error);
  }
  sync_directory(parent_of(link), kind);
}

}  // namespace lerobot::formats
