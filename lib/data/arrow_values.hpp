#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace arrow {
class ChunkedArray;
}

namespace lerobot::data {

/// Copies a numeric column, flattened in row-major order, to `out` and converts each value to T.
///
/// `shape` is the shape of one row: empty for a scalar column, else the lengths of the nested lists, all checked.
/// Throws: Error{kDataset} that begins with `where` for another type, a null, or a list of another length.
template <typename T>
void copy_values(const arrow::ChunkedArray& column, std::span<const std::int64_t> shape, T* out,
                 const std::string& where);

/// Text values of a column; a null gives nullopt.
[[nodiscard]] std::vector<std::optional<std::string>> read_strings(const arrow::ChunkedArray& column,
                                                                   const std::string& where);

/// Appends the encoded pictures of a struct{bytes, path} column, and to `offsets` the end of each.
void append_images(const arrow::ChunkedArray& column, std::vector<std::uint8_t>& bytes,
                   std::vector<std::int64_t>& offsets, const std::string& where);

}  // namespace lerobot::data
