#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lerobot/data/metadata.hpp"

namespace lerobot::data {

/// Encoded pictures of one column, back to back.
struct ImageColumn {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> ends;  ///< one per row

  [[nodiscard]] std::span<const std::uint8_t> row(std::int64_t i) const {
    const std::int64_t begin = i == 0 ? 0 : ends[static_cast<std::size_t>(i) - 1];
    return std::span(bytes).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(ends[static_cast<std::size_t>(i)] - begin));
  }
};

/// The table of the selected episodes, in memory. Floats are float32, integers int64; a shape-[1] feature is [rows].
struct Columns {
  std::int64_t num_rows = 0;
  std::map<std::string, at::Tensor> numeric;
  std::map<std::string, ImageColumn> images;
  std::map<std::string, std::vector<std::optional<std::string>>> strings;
};

/// Reads the rows of `episodes` (ascending) in file order; row groups without them are not read.
///
/// Throws: Error{kDataset} when a file is missing or damaged, or when rows are missing, doubled or out of order.
[[nodiscard]] Columns read_columns(const Metadata& metadata, std::span<const std::int64_t> episodes);

}  // namespace lerobot::data
