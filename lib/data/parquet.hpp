#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace arrow {
class ChunkedArray;
class Table;
}  // namespace arrow

namespace lerobot::data {

/// One parquet file, read by column name. Every failure is an Error{kDataset} that names the file.
class ParquetFile {
 public:
  explicit ParquetFile(const std::filesystem::path& path);
  ParquetFile(ParquetFile&&) noexcept;
  ~ParquetFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::int64_t num_rows() const;
  [[nodiscard]] int num_row_groups() const;
  [[nodiscard]] bool has(const std::string& column) const;

  /// Smallest and largest value of an integer column in a row group, where the writer recorded them.
  [[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> int_range(int row_group,
                                                                               const std::string& column) const;

  [[nodiscard]] std::shared_ptr<arrow::Table> read(const std::vector<std::string>& columns) const;
  [[nodiscard]] std::shared_ptr<arrow::Table> read_row_group(int row_group,
                                                             const std::vector<std::string>& columns) const;

  /// Whole columns. Throws when the column is missing, of another type, or holds a null.
  [[nodiscard]] std::vector<std::int64_t> int64s(const std::string& column) const;
  [[nodiscard]] std::vector<double> doubles(const std::string& column) const;
  [[nodiscard]] std::vector<std::string> strings(const std::string& column) const;
  [[nodiscard]] std::vector<std::vector<std::string>> string_lists(const std::string& column) const;

 private:
  struct Reader;
  [[nodiscard]] std::vector<int> leaves(const std::vector<std::string>& columns) const;

  std::string path_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace lerobot::data
