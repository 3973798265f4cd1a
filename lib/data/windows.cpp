#include "data/windows.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>

#include "lerobot/core/error.hpp"

namespace lerobot::data {

Window make_window(const std::string& key, const std::vector<double>& delta_timestamps, std::int64_t fps,
                   double tolerance_s) {
  Window window;
  std::string offenders;
  for (const double seconds : delta_timestamps) {
    const double frames = seconds * static_cast<double>(fps);
    const double nearest = std::nearbyint(frames);  // the default rounding mode takes ties to even
    if (!(std::abs(frames - nearest) / static_cast<double>(fps) <= tolerance_s))
      offenders += fmt::format(" {}", seconds);
    else
      window.deltas.push_back(static_cast<std::int64_t>(nearest));
  }
  if (!offenders.empty())
    fail(ErrorKind::kConfig, "delta_timestamps of \"{}\": no multiples of 1/fps = 1/{} s within tolerance_s={}:{}.",
         key, fps, tolerance_s, offenders);
  window.consecutive = !window.deltas.empty();
  for (std::size_t i = 1; i < window.deltas.size(); ++i)
    window.consecutive = window.consecutive && window.deltas[i] == window.deltas[i - 1] + 1;
  return window;
}

void window_rows(const Window& window, const RowInEpisode& at, std::int64_t* out) {
  if (window.deltas.empty()) *out = at.row;
  for (const std::int64_t delta : window.deltas) *out++ = std::clamp(at.row + delta, at.begin, at.end - 1);
}

void window_padding(const Window& window, const RowInEpisode& at, bool* out) {
  for (const std::int64_t delta : window.deltas) *out++ = at.row + delta < at.begin || at.row + delta >= at.end;
}

void gather_window(const Window& window, const RowInEpisode& at, const char* table, std::size_t row_bytes, char* out) {
  const auto copy = [&](std::int64_t row, std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * row_bytes;
    std::memcpy(out, table + static_cast<std::size_t>(row) * row_bytes, bytes);
    out += bytes;
  };
  if (window.deltas.empty()) return copy(at.row, 1);
  if (!window.consecutive) {
    for (const std::int64_t delta : window.deltas) copy(std::clamp(at.row + delta, at.begin, at.end - 1), 1);
    return;
  }
  const std::int64_t first = at.row + window.deltas.front(), last = first + window.length();
  for (std::int64_t row = first; row < std::min(at.begin, last); ++row) copy(at.begin, 1);
  const std::int64_t begin = std::max(first, at.begin), end = std::min(last, at.end);
  if (begin < end) copy(begin, end - begin);
  for (std::int64_t row = std::max(first, at.end); row < last; ++row) copy(at.end - 1, 1);
}

}  // namespace lerobot::data
