#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lerobot/core/json.hpp"
#include "lerobot/formats/manifest.hpp"

namespace lerobot::checkpoint {

/// The files of a checkpoint with what its manifest, if there is one, knows of them.
class VerifiedFiles {
 public:
  /// `root`: the step folder. Throws: Error{kCheckpoint} when its manifest is damaged.
  explicit VerifiedFiles(std::filesystem::path root);

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  /// What the manifest knows of a file below the root; null when it is not listed.
  [[nodiscard]] const formats::ManifestFile* listed(const std::filesystem::path& file) const;
  /// The value in a JSON file whose bytes are as they were written.
  [[nodiscard]] Json json(const std::filesystem::path& file) const;
  /// Returns if all bytes of a small file are as they were written.
  void require_intact(const std::filesystem::path& file) const;

 private:
  std::filesystem::path root_;
  std::optional<formats::Manifest> manifest_;
};

}  // namespace lerobot::checkpoint
