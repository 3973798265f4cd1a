#pragma once

#include <algorithm>
#include <cstdint>

namespace lerobot::mesh {

/// Rows of dim 0, half-open.
struct Rows {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
};

/// Rows per rank when `rows` are dealt to `num_ranks`: the first ranks hold this many, the last may hold fewer or none.
constexpr std::int64_t chunk_rows(std::int64_t rows, int num_ranks) { return (rows + num_ranks - 1) / num_ranks; }

/// The rows that `rank` of `num_ranks` holds.
constexpr Rows rows_of_rank(std::int64_t rows, int rank, int num_ranks) {
  const std::int64_t chunk = chunk_rows(rows, num_ranks);
  const std::int64_t begin = std::min<std::int64_t>(chunk * rank, rows);
  return {begin, std::min(begin + chunk, rows)};
}
static_assert(rows_of_rank(5, 3, 4).begin == rows_of_rank(5, 3, 4).end);  // 5 rows on 4 ranks: 2 2 1 0

}  // namespace lerobot::mesh
