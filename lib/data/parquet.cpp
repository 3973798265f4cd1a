#include "data/parquet.hpp"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/statistics.h>

#include <algorithm>

#include "data/arrow_values.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {

struct ParquetFile::Reader {
  std::unique_ptr<parquet::arrow::FileReader> arrow;
  std::shared_ptr<parquet::FileMetaData> metadata;
};

namespace {

/// Runs a step of Arrow, which reports by status or by exception, under the name of the file.
template <typename Step>
auto guarded(const std::string& path, Step&& step) -> decltype(step().ValueUnsafe()) {
  std::string what;
  try {
    auto result = step();
    if (result.ok()) return std::move(result).ValueUnsafe();
    what = result.status().ToString();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    what = e.what();
  }
  fail(ErrorKind::kDataset, "{}: not a readable parquet file: {}. Copy the dataset again.", path, what);
}

}  // namespace

ParquetFile::ParquetFile(const std::filesystem::path& path)
    : path_(path.string()), reader_(std::make_unique<Reader>()) {
  reader_->arrow = guarded(path_, [&]() -> arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> {
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path_));
    return parquet::arrow::OpenFile(std::move(file), arrow::default_memory_pool());
  });
  reader_->metadata = reader_->arrow->parquet_reader()->metadata();
}

ParquetFile::ParquetFile(ParquetFile&&) noexcept = default;
ParquetFile::~ParquetFile() = default;

std::int64_t ParquetFile::num_rows() const { return reader_->metadata->num_rows(); }
int ParquetFile::num_row_groups() const { return reader_->metadata->num_row_groups(); }

std::vector<int> ParquetFile::leaves(const std::vector<std::string>& columns) const {
  // A top-level column of a nested type owns several leaves; names may hold dots, so the first path part decides.
  std::vector<int> found;
  const parquet::SchemaDescriptor* schema = reader_->metadata->schema();
  for (const std::string& column : columns) {
    const std::size_t before = found.size();
    for (int i = 0; i < schema->num_columns(); ++i)
      if (schema->Column(i)->path()->ToDotVector().front() == column) found.push_back(i);
    if (found.size() == before) fail(ErrorKind::kDataset, "{}: there is no column \"{}\".", path_, column);
  }
  return found;
}

bool ParquetFile::has(const std::string& column) const {
  const parquet::SchemaDescriptor* schema = reader_->metadata->schema();
  for (int i = 0; i < schema->num_columns(); ++i)
    if (schema->Column(i)->path()->ToDotVector().front() == column) return true;
  return false;
}

std::optional<std::pair<std::int64_t, std::int64_t>> ParquetFile::int_range(int row_group,
                                                                            const std::string& column) const {
  const std::vector<int> at = leaves({column});
  const auto chunk = reader_->metadata->RowGroup(row_group)->ColumnChunk(at.front());
  const std::shared_ptr<parquet::Statistics> stats = chunk->is_stats_set() ? chunk->statistics() : nullptr;
  if (!stats || !stats->HasMinMax() || stats->physical_type() != parquet::Type::INT64) return std::nullopt;
  const auto& typed = static_cast<const parquet::Int64Statistics&>(*stats);
  return std::pair{typed.min(), typed.max()};
}

std::shared_ptr<arrow::Table> ParquetFile::read(const std::vector<std::string>& columns) const {
  std::vector<int> groups(static_cast<std::size_t>(num_row_groups()));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
  const std::vector<int> wanted = leaves(columns);
  return guarded(path_, [&] { return reader_->arrow->ReadRowGroups(groups, wanted); });
}

std::shared_ptr<arrow::Table> ParquetFile::read_row_group(int row_group,
                                                          const std::vector<std::string>& columns) const {
  const std::vector<int> wanted = leaves(columns);
  return guarded(path_, [&] { return reader_->arrow->ReadRowGroup(row_group, wanted); });
}

std::vector<std::int64_t> ParquetFile::int64s(const std::string& column) const {
  const auto table = read({column});
  std::vector<std::int64_t> out(static_cast<std::size_t>(table->num_rows()));
  copy_values(*table->GetColumnByName(column), {}, out.data(), path_ + ": column \"" + column + "\"");
  return out;
}

std::vector<double> ParquetFile::doubles(const std::string& column) const {
  const auto table = read({column});
  std::vector<double> out(static_cast<std::size_t>(table->num_rows()));
  copy_values(*table->GetColumnByName(column), {}, out.data(), path_ + ": column \"" + column + "\"");
  return out;
}

std::vector<std::string> ParquetFile::strings(const std::string& column) const {
  std::vector<std::string> out;
  for (auto& value : read_strings(*read({column})->GetColumnByName(column), path_ + ": column \"" + column + "\"")) {
    if (!value) fail(ErrorKind::kDataset, "{}: column \"{}\" holds a null.", path_, column);
    out.push_back(std::move(*value));
  }
  return out;
}

std::vector<std::vector<std::string>> ParquetFile::string_lists(const std::string& column) const {
  const std::string where = path_ + ": column \"" + column + "\"";
  std::vector<std::vector<std::string>> out;
  const auto table = read({column});
  for (const auto& chunk : table->GetColumnByName(column)->chunks()) {
    if (chunk->type_id() != arrow::Type::LIST)
      fail(ErrorKind::kDataset, "{} is of type {}; expected lists of text.", where, chunk->type()->ToString());
    const auto& lists = static_cast<const arrow::ListArray&>(*chunk);
    for (std::int64_t i = 0; i < lists.length(); ++i) {
      std::vector<std::string>& row = out.emplace_back();
      if (lists.IsNull(i)) continue;
      for (auto& value : read_strings(arrow::ChunkedArray(lists.value_slice(i)), where))
        row.push_back(value.value_or(""));
    }
  }
  return out;
}

}  // namespace lerobot::data
