#pragma once

#include <filesystem>
#include <vector>

#include "lerobot/core/error.hpp"

namespace lerobot::formats {

/// A folder that appears under its name only when everything in it is complete and on disk.
///
/// The files are made below staging(), a sibling called `.incomplete-<name>`: it does not look like a finished folder
/// to anyone, and remove_stale() finds it after a crash. One process creates and commits; others that share the file
/// system write below staging_of(path) meanwhile, and sync what they write.
class CommitDirectory {
 public:
  /// Creates the staging folder, empty; what an earlier crash left under that name is removed.
  ///
  /// Throws: Error{kind} with the path and the system's reason.
  explicit CommitDirectory(std::filesystem::path path, ErrorKind kind = ErrorKind::kCheckpoint);

  /// Removes the staging folder unless commit() succeeded.
  ~CommitDirectory();
  CommitDirectory(const CommitDirectory&) = delete;
  CommitDirectory& operator=(const CommitDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& staging() const { return staging_; }

  /// Syncs every file and folder below staging(), then renames it to its name, then syncs the parent.
  ///
  /// An older folder of that name is exchanged with the new one in one step and then removed.
  void commit();

  /// Where the files of `path` are made before it exists.
  [[nodiscard]] static std::filesystem::path staging_of(const std::filesystem::path& path);

  /// Removes what crashes left in `parent`: folders, files and links whose names begin with `.incomplete-`.
  ///
  /// Nobody may be writing below `parent` at that time. Where a crash hit the exchange of an old folder on a file
  /// system that cannot exchange, the old one gets its name back. Gives the removed paths, sorted. A missing `parent`
  /// holds none.
  static std::vector<std::filesystem::path> remove_stale(const std::filesystem::path& parent,
                                                         ErrorKind kind = ErrorKind::kCheckpoint);

 private:
  std::filesystem::path path_;
  std::filesystem::path staging_;
  ErrorKind kind_;
  bool committed_ = false;
};

}  // namespace lerobot::formats
