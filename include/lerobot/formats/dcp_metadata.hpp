#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lerobot/core/dtype.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/mapped_file.hpp"

namespace lerobot::formats {

inline constexpr std::string_view kDcpMetadataName = ".metadata";

/// Where an item lies: bytes [offset, offset + nbytes) of one of the directory's files.
struct DcpLocation {
  std::uint32_t file = 0;  ///< index into DcpMetadata::files()
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
  friend bool operator==(const DcpLocation&, const DcpLocation&) = default;
};

/// A tensor of a distributed checkpoint: its global shape, and the chunks that it is stored in.
///
/// Chunks lie in flat arrays, as there can be millions.
class DcpTensor {
 public:
  DcpTensor(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {}

  /// Appends a chunk; `offsets` and `sizes` have an entry for each dimension.
  void add_chunk(std::span<const std::int64_t> offsets, std::span<const std::int64_t> sizes, DcpLocation location);

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] std::span<const std::int64_t> shape() const { return shape_; }
  [[nodiscard]] std::size_t num_chunks() const { return locations_.size(); }
  [[nodiscard]] std::span<const std::int64_t> offsets(std::size_t chunk) const { return bounds(2 * chunk); }
  [[nodiscard]] std::span<const std::int64_t> sizes(std::size_t chunk) const { return bounds(2 * chunk + 1); }
  [[nodiscard]] const DcpLocation& location(std::size_t chunk) const { return locations_[chunk]; }
  void set_location(std::size_t chunk, DcpLocation location) { locations_[chunk] = location; }

  /// Why the chunks do not cover the tensor exactly once; none when they do.
  [[nodiscard]] std::optional<std::string> coverage_fault() const;

  friend bool operator==(const DcpTensor&, const DcpTensor&) = default;

 private:
  [[nodiscard]] std::span<const std::int64_t> bounds(std::size_t row) const {
    return std::span(bounds_).subspan(row * shape_.size(), shape_.size());
  }

  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> bounds_;  ///< per chunk: offsets, then sizes
  std::vector<DcpLocation> locations_;
};

/// The place of an entry in the nested state dict that was saved: names of dicts, positions in lists.
using DcpPath = std::vector<std::variant<std::string, std::int64_t>>;

struct DcpEntry {
  std::string key;  ///< the path joined with `.`
  DcpPath path;
  std::variant<DcpTensor, DcpLocation> content;  ///< a tensor, or the one item of a pickled value
  [[nodiscard]] const DcpTensor* tensor() const { return std::get_if<DcpTensor>(&content); }
  [[nodiscard]] const DcpLocation* value() const { return std::get_if<DcpLocation>(&content); }
  friend bool operator==(const DcpEntry&, const DcpEntry&) = default;
};

/// What the `.metadata` of a distributed checkpoint says.
class DcpMetadata {
 public:
  /// Gives the number of a data file, which gets one at its first call.
  ///
  /// Throws: Error{kCheckpoint} when the path leaves the directory.
  std::uint32_t file_number(std::string_view relative_path);
  /// Throws: Error{kCheckpoint} when the key is there already.
  DcpEntry& add(DcpEntry entry);

  [[nodiscard]] const std::vector<std::string>& files() const& { return files_; }
  [[nodiscard]] const std::vector<DcpEntry>& entries() const& { return entries_; }
  [[nodiscard]] std::vector<DcpEntry>& entries() & { return entries_; }
  // A loop over the parts of a temporary would outlive it.
  void files() const&& = delete;
  void entries() const&& = delete;
  [[nodiscard]] const DcpEntry* find(std::string_view key) const;
  [[nodiscard]] DcpEntry* find(std::string_view key);

 private:
  std::vector<std::string> files_;
  std::vector<DcpEntry> entries_;
  std::map<std::string, std::uint32_t, std::less<>> file_numbers_;
  std::map<std::string, std::size_t, std::less<>> by_key_;
};

/// Reads the `.metadata` of a directory that torch 2.11 to 2.15, or this program, wrote.
///
/// Afterwards every chunk is inside its tensor and has a location in a file below the directory; whether the files are
/// there and long enough shows when they are read.
/// Throws: Error{kCheckpoint} with "metadata is None" and the path when there is no such file; naming key or global
/// else.
[[nodiscard]] DcpMetadata read_dcp_metadata(const std::filesystem::path& directory);

/// The same from bytes; `where` is for messages.
[[nodiscard]] DcpMetadata parse_dcp_metadata(std::span<const std::byte> bytes, const std::string& where);

/// The bytes of `.metadata`, in the form that every torch from 2.11 on reads.
///
/// Throws: Error{kCheckpoint} "Failed to validate global plan" when the chunks of a tensor do not cover it exactly
/// once.
[[nodiscard]] std::string encode_dcp_metadata(const DcpMetadata& metadata);

/// Writes `directory`/.metadata, atomically. It comes last: without it the checkpoint does not exist.
void write_dcp_metadata(const DcpMetadata& metadata, const std::filesystem::path& directory);

/// The bytes of an item in its file.
///
/// Throws: Error{kCheckpoint} naming file, key and both lengths when the file is too short.
[[nodiscard]] std::span<const std::byte> dcp_item(const MappedFile& file, const DcpLocation& location,
                                                  std::string_view key);

}  // namespace lerobot::formats
