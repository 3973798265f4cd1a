#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/error.hpp"
#include "lerobot/formats/crc32c.hpp"

namespace lerobot::formats {

inline constexpr std::string_view kManifestName = "manifest.json";

/// What the manifest knows about one file.
struct ManifestFile {
  std::uint64_t nbytes = 0;
  std::vector<StoredRange> ranges;  ///< ascending, apart from one another, inside the file
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

/// `manifest.json` of a checkpoint step: every file with its length and a CRC-32C for each range that is read on its
/// own.
///
/// Files are called by their path below the step folder, with `/`. Files that are not listed are unverified. A text of
/// a manifest carries its own sum.
class Manifest {
 public:
  /// Lists a file, or lists it anew.
  ///
  /// Throws: Error{kInternal} when the path leaves the folder, or a range the file.
  void add_file(std::string path, std::uint64_t nbytes, std::vector<StoredRange> ranges);
  void remove_file(std::string_view path);
  /// Lists what `other` lists. So the ranks' parts, sent as text, become one.
  void merge(Manifest other);

  [[nodiscard]] const std::map<std::string, ManifestFile, std::less<>>& files() const { return files_; }
  [[nodiscard]] const ManifestFile* find(std::string_view path) const;

  [[nodiscard]] std::string text() const;
  /// Throws: Error{kCheckpoint} naming `where` when the text is damaged or of a newer version.
  static Manifest parse(std::string_view text, const std::filesystem::path& where);

  /// Writes `directory`/manifest.json, atomically.
  void write(const std::filesystem::path& directory) const;
  /// Reads `directory`/manifest.json; none where there is no such file: a checkpoint of LeRobot (Python).
  static std::optional<Manifest> read(const std::filesystem::path& directory);

 private:
  std::map<std::string, ManifestFile, std::less<>> files_;
};

/// Sums of bytes that are read as a whole: one range, or fixed blocks of 4 MiB when they are more.
[[nodiscard]] std::vector<StoredRange> block_ranges(std::span<const std::byte> bytes);

/// Describes a file as it is on disk: a safetensors file by header and tensors, others by blocks.
///
/// Throws: Error{kCheckpoint} when it cannot be read, or is a damaged safetensors file.
[[nodiscard]] ManifestFile describe_file(const std::filesystem::path& path);

/// Describes every regular file below `directory` but the manifest itself; what `seal` writes after an edit.
[[nodiscard]] Manifest describe_directory(const std::filesystem::path& directory);

/// A place where a file differs from what the manifest says.
struct Damage {
  std::string file;
  std::string range;  ///< name of the tensor or part; empty when it has none
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
  std::string reason;
  [[nodiscard]] std::string describe() const;
};

enum class MissingFiles { kIgnored, kReported };

/// Compares one file below `directory` with the manifest; no damages when it is not listed.
[[nodiscard]] std::vector<Damage> verify_file(const Manifest& manifest, const std::filesystem::path& directory,
                                              std::string_view path, MissingFiles missing = MissingFiles::kReported);

/// Compares all listed files; one that cannot be read is a damage, one that is missing only if asked.
[[nodiscard]] std::vector<Damage> verify_all(const Manifest& manifest, const std::filesystem::path& directory,
                                             MissingFiles missing);

/// Checks the ranges of one file while it is read, each at most once.
class RangeVerifier {
 public:
  /// `file` may be null: then nothing is known and everything passes. It must outlive this object.
  RangeVerifier(const ManifestFile* file, std::filesystem::path path);

  /// Returns when all stored ranges that touch [offset, offset + nbytes) of the file are as they were written.
  ///
  /// `whole` is the file from its first byte to its last.
  /// Throws: Error{kCheckpoint} naming file, tensor and range.
  void require(std::span<const std::byte> whole, std::uint64_t offset, std::uint64_t nbytes);

 private:
  const ManifestFile* file_;
  std::filesystem::path path_;
  std::vector<bool> checked_;
};

}  // namespace lerobot::formats
