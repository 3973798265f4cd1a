#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lerobot/core/dtype.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/crc32c.hpp"
#include "lerobot/formats/mapped_file.hpp"

namespace lerobot::formats {

/// A tensor of a safetensors file and where its bytes lie, counted from the first data byte.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t nbytes() const { return end - begin; }
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

/// Name and text pairs of `__metadata__`, in the order of the file.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// What the head of a safetensors file says, checked against the length of the file.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of the header
  SafetensorsMetadata metadata;
  std::uint64_t data_offset = 0;  ///< of the first data byte in the file
};

/// The longest header that is read or written.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// Reads and checks the head of a safetensors file that is in memory.
///
/// Afterwards every entry is inside the file, has exactly the bytes that shape and dtype need, and the entries cover
/// the data without hole or overlap. The work is linear in the header, and so is the memory.
/// Throws: Error{kind} naming `where`, the tensor where there is one, and the values.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                                         const std::filesystem::path& where, ErrorKind kind);

/// A safetensors file, mapped into memory and open for reading.
class SafetensorsFile {
 public:
  /// Throws: as MappedFile and parse_safetensors_header.
  explicit SafetensorsFile(const std::filesystem::path& path, ErrorKind kind = ErrorKind::kCheckpoint);

  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  [[nodiscard]] const SafetensorsMetadata& metadata() const { return header_.metadata; }
  /// The metadata text under `key`; empty when there is none.
  [[nodiscard]] std::string_view metadata(std::string_view key) const;
  /// The entry called `name`, or null.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;
  /// The entry called `name`. Throws: Error{kind} naming file and tensor when there is none.
  [[nodiscard]] const SafetensorsEntry& at(std::string_view name) const;
  /// Little-endian row-major elements; valid as long as this object. Written files align them to the item size, a
  /// foreign file need not.
  [[nodiscard]] std::span<const std::byte> bytes(const SafetensorsEntry& entry) const;
  [[nodiscard]] std::span<const std::byte> bytes(std::string_view name) const { return bytes(at(name)); }

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] std::span<const std::byte> file_bytes() const { return file_.bytes(); }
  [[nodiscard]] std::uint64_t data_offset() const { return header_.data_offset; }

 private:
  ErrorKind kind_;
  MappedFile file_;
  SafetensorsHeader header_;
  std::map<std::string_view, std::size_t, std::less<>> by_name_;
};

/// A tensor that is to be written.
struct SafetensorsSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
};

/// Writes one safetensors file, tensor by tensor, without holding any of them.
///
/// The entries are laid out as the reference writer does: wider dtypes first, then by name. The file appears under its
/// name at commit().
class SafetensorsWriter {
 public:
  /// Computes the header and writes it to the temporary.
  ///
  /// Throws: Error{kind} before any file is made when a name is `__metadata__`, given twice or not UTF-8, a shape is
  ///         negative or too large, or the header would pass kMaxSafetensorsHeaderBytes; with path and the system's
  ///         reason when the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<SafetensorsSpec> tensors,
                    SafetensorsMetadata metadata = {}, ErrorKind kind = ErrorKind::kCheckpoint);

  /// All tensors in the order of the file; writing them in this order writes the disk front to back.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  /// Writes all bytes of a tensor. Tensors may come in any order, each once.
  void write(std::string_view name, std::span<const std::byte> bytes) { write_part(name, 0, bytes); }

  /// Writes the bytes of a tensor from `offset` on. Parts may come in any order, each byte once.
  void write_part(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes);

  /// Makes the file appear. Gives the sums of what was written: the header and each tensor, in the order of the file.
  ///
  /// Throws: Error{kInternal} when bytes of a tensor are missing or were written twice.
  std::vector<StoredRange> commit();

 private:
  struct Part {
    std::uint64_t begin, end;
    std::uint32_t crc32c;
  };
  SafetensorsWriter(const std::filesystem::path& path, std::pair<std::string, std::vector<SafetensorsEntry>> head,
                    ErrorKind kind);

  std::vector<SafetensorsEntry> entries_;
  std::map<std::string_view, std::size_t, std::less<>> by_name_;
  std::vector<std::vector<Part>> parts_;  ///< per entry, in the order of writing
  std::string head_;                      ///< length and header, as in the file
  AtomicFile file_;
};

/// The bytes that stand before the data: the length, the header and its padding. Gives also the entries in file order.
///
/// Throws: as the constructor of SafetensorsWriter.
[[nodiscard]] std::pair<std::string, std::vector<SafetensorsEntry>> make_safetensors_head(
    std::vector<SafetensorsSpec> tensors, const SafetensorsMetadata& metadata, const std::filesystem::path& where,
    ErrorKind kind);

/// A tensor that lies in memory, row-major and little-endian.
struct SafetensorsTensor {
  SafetensorsSpec spec;
  std::span<const std::byte> bytes;
};

/// Writes one safetensors file from tensors in memory; see SafetensorsWriter.
std::vector<StoredRange> write_safetensors(const std::filesystem::path& path,
                                           const std::vector<SafetensorsTensor>& tensors,
                                           const SafetensorsMetadata& metadata = {},
                                           ErrorKind kind = ErrorKind::kCheckpoint);

}  // namespace lerobot::formats
