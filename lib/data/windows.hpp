#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lerobot::data {

/// A row of the table with the rows of its episode, half-open.
struct RowInEpisode {
  std::int64_t row, begin, end;
};

/// Which rows around a frame one key takes.
struct Window {
  std::vector<std::int64_t> deltas;  ///< empty: the frame itself, with no window dimension
  bool consecutive = false;          ///< each delta is one more than the one before

  [[nodiscard]] std::int64_t length() const { return deltas.empty() ? 1 : static_cast<std::int64_t>(deltas.size()); }
};

/// Offsets in seconds -> frames, ties to even.
/// Throws: Error{kConfig} listing the offsets that are no multiple of 1/fps within `tolerance_s`.
[[nodiscard]] Window make_window(const std::string& key, const std::vector<double>& delta_timestamps, std::int64_t fps,
                                 double tolerance_s);

/// The rows of a window, clamped to the episode.
void window_rows(const Window& window, const RowInEpisode& at, std::int64_t* out);

/// True where a window reaches out of the episode.
void window_padding(const Window& window, const RowInEpisode& at, bool* out);

/// Copies the rows of a window out of a table of `row_bytes` per row.
void gather_window(const Window& window, const RowInEpisode& at, const char* table, std::size_t row_bytes, char* out);

}  // namespace lerobot::data
