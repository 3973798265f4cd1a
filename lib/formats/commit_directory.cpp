#include "lerobot/formats/commit_directory.hpp"

#include <fcntl.h>
#include <stdio.h>  // renameat2

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "formats/posix_file.hpp"
#include "lerobot/formats/atomic_file.hpp"

namespace lerobot::formats {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kStagingPrefix = ".incomplete-";
constexpr std::string_view kReplacedPrefix = ".replaced-";

void remove_tree(const fs::path& path, ErrorKind kind) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_system(kind, path, "remove", error.value());
}

// Deepest first, so that a folder is synced after the names in it are final.
void sync_tree(const fs::path& folder, ErrorKind kind) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_symlink()) continue;
    if (it->is_directory()) {
      sync_tree(it->path(), kind);
    } else {
      sync_file(it->path(), kind);
    }
  }
  if (error) fail_system(kind, folder, "list", error.value());
  sync_directory(folder, kind);
}

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

CommitDirectory::CommitDirectory(fs::path path, ErrorKind kind)
    : path_(std::move(path)), staging_(staging_of(path_)), kind_(kind) {
  remove_tree(staging_, kind_);
  std::error_code error;
  fs::create_directories(staging_, error);
  if (error) fail_system(kind_, staging_, "create the folder", error.value());
}

CommitDirectory::~CommitDirectory() {
  if (committed_) return;
  std::error_code ignored;  // a folder that stays is found by remove_stale()
  fs::remove_all(staging_, ignored);
}

fs::path CommitDirectory::staging_of(const fs::path& path) {
  if (!path.has_filename()) fail(ErrorKind::kInternal, "CommitDirectory: \"{}\" has no last name.", path.string());
  return path.parent_path() / (std::string(kStagingPrefix) + path.filename().string());
}

void CommitDirectory::commit() {
  sync_tree(staging_, kind_);
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path_, ignored))) {
    if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0) {
      // A file system without exchange. A crash between these two renames leaves the old folder under its second name;
      // remove_stale() then gives it its first one back.
      if (errno != EINVAL && errno != ENOSYS) fail_system(kind_, path_, "exchange it with its new content", errno);
      const fs::path old = path_.parent_path() / (std::string(kReplacedPrefix) + path_.filename().string());
      remove_tree(old, kind_);
      if (::rename(path_.c_str(), old.c_str()) != 0) fail_system(kind_, path_, "move it aside", errno);
      if (::rename(staging_.c_str(), path_.c_str()) != 0)
        fail_system(kind_, path_, "rename its new content to it", errno);
      fs::remove_all(old, ignored);
    }
  } else if (::rename(staging_.c_str(), path_.c_str()) != 0) {
    fail_system(kind_, path_, "rename its staging folder to it", errno);
  }
  committed_ = true;
  sync_directory(parent_of(path_), kind_);
  fs::remove_all(staging_, ignored);  // after an exchange, what was there before
}

std::vector<fs::path> CommitDirectory::remove_stale(const fs::path& parent, ErrorKind kind) {
  std::vector<fs::path> stale;
  std::vector<fs::path> replaced;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(kStagingPrefix)) stale.push_back(it->path());
    if (name.starts_with(kReplacedPrefix)) replaced.push_back(it->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) fail_system(kind, parent, "list", error.value());
  for (const fs::path& path : replaced) {
    const fs::path original = parent / path.filename().string().substr(kReplacedPrefix.size());
    if (fs::exists(fs::symlink_status(original, error))) {
      stale.push_back(path);
    } else if (::rename(path.c_str(), original.c_str()) != 0) {
      fail_system(kind, original, "give it back its name", errno);
    }
  }
  std::sort(stale.begin(), stale.end());
  for (const fs::path& path : stale) remove_tree(path, kind);
  return stale;
}

}  // namespace lerobot::formats
