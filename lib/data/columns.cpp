#include "data/columns.hpp"

#include <ATen/ATen.h>
#include <arrow/api.h>

#include <algorithm>
#include <set>

#include "data/arrow_values.hpp"
#include "data/parquet.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

at::ScalarType type_of(ColumnKind kind) {
  return kind == ColumnKind::kFloat ? at::kFloat : kind == ColumnKind::kBool ? at::kBool : at::kLong;
}

/// Rows [begin, end) of a table that belong to selected episodes.
struct Run {
  std::int64_t begin, end;
};

std::vector<Run> selected_runs(const std::vector<std::int64_t>& episode_of_row, const std::vector<bool>& selected,
                               const std::string& path) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < episode_of_row.size(); ++i) {
    const std::int64_t episode = episode_of_row[i];
    if (episode < 0 || episode >= static_cast<std::int64_t>(selected.size()))
      fail(ErrorKind::kDataset, "{}: a row has episode_index {}; the dataset has episodes 0..{}.", path, episode,
           static_cast<std::int64_t>(selected.size()) - 1);
    if (!selected[static_cast<std::size_t>(episode)]) continue;
    const auto row = static_cast<std::int64_t>(i);
    if (!runs.empty() && runs.back().end == row)
      ++runs.back().end;
    else
      runs.push_back({row, row + 1});
  }
  return runs;
}

class TableFiller {
 public:
  TableFiller(const Metadata& metadata, std::int64_t num_rows) : info_(metadata.info) {
    columns_.num_rows = num_rows;
    for (const Feature& feature : info_.features) {
      if (feature.kind == ColumnKind::kVideo || feature.kind == ColumnKind::kLanguage) continue;
      names_.push_back(feature.name);
      if (feature.kind == ColumnKind::kImage) columns_.images[feature.name];
      if (feature.kind == ColumnKind::kString) columns_.strings[feature.name];
      if (feature.kind == ColumnKind::kImage || feature.kind == ColumnKind::kString) continue;
      std::vector<std::int64_t> sizes{num_rows};
      if (feature.shape != std::vector<std::int64_t>{1})
        sizes.insert(sizes.end(), feature.shape.begin(), feature.shape.end());
      columns_.numeric[feature.name] = at::empty(sizes, type_of(feature.kind));
    }
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::int64_t filled() const { return filled_; }

  void append(const arrow::Table& rows, const std::string& path) {
    if (rows.num_rows() > columns_.num_rows - filled_)
      fail(ErrorKind::kDataset, "{}: there are more rows than meta/episodes counts ({}).", path, columns_.num_rows);
    for (const Feature& feature : info_.features) append_feature(feature, rows, path);
    filled_ += rows.num_rows();
  }

  Columns take() { return std::move(columns_); }

 private:
  void append_feature(const Feature& feature, const arrow::Table& rows, const std::string& path) {
    if (feature.kind == ColumnKind::kVideo || feature.kind == ColumnKind::kLanguage) return;
    const std::string where = fmt::format("{}: column \"{}\"", path, feature.name);
    const std::shared_ptr<arrow::ChunkedArray> column = rows.GetColumnByName(feature.name);
    if (!column) fail(ErrorKind::kDataset, "{} is missing.", where);
    if (feature.kind == ColumnKind::kImage) {
      ImageColumn& images = columns_.images[feature.name];
      return append_images(*column, images.bytes, images.ends, where);
    }
    if (feature.kind == ColumnKind::kString) {
      auto& strings = columns_.strings[feature.name];
      for (auto& value : read_strings(*column, where)) strings.push_back(std::move(value));
      return;
    }
    const at::Tensor& target = columns_.numeric.at(feature.name);
    const std::int64_t offset = filled_ * (target.numel() / std::max<std::int64_t>(columns_.num_rows, 1));
    switch (feature.kind) {
      case ColumnKind::kFloat:
        return copy_values(*column, feature.shape, target.data_ptr<float>() + offset, where);
      case ColumnKind::kBool:
        return copy_values(*column, feature.shape, target.data_ptr<bool>() + offset, where);
      default:
        return copy_values(*column, feature.shape, target.data_ptr<std::int64_t>() + offset, where);
    }
  }

  const DatasetInfo& info_;
  std::vector<std::string> names_;
  Columns columns_;
  std::int64_t filled_ = 0;
};

/// Windows are cut by row number, so every row must be where its episode says it is.
void check_rows(const Metadata& metadata, std::span<const std::int64_t> episodes, const Columns& columns) {
  const auto* episode_of = columns.numeric.at("episode_index").const_data_ptr<std::int64_t>();
  const auto* index_of = columns.numeric.at("index").const_data_ptr<std::int64_t>();
  const auto* task_of = columns.numeric.at("task_index").const_data_ptr<std::int64_t>();
  std::int64_t row = 0;
  for (const std::int64_t episode : episodes) {
    const Episode& bounds = metadata.episodes[static_cast<std::size_t>(episode)];
    for (std::int64_t index = bounds.from; index < bounds.to; ++index, ++row) {
      if (episode_of[row] != episode || index_of[row] != index)
        fail(ErrorKind::kDataset,
             "dataset {}: the data files have episode {}, index {} where meta/episodes says episode {}, index {}. "
             "Data and meta are of different versions; copy the dataset again.",
             metadata.root.string(), episode_of[row], index_of[row], episode, index);
      if (task_of[row] < 0 || task_of[row] >= static_cast<std::int64_t>(metadata.tasks.size()))
        fail(ErrorKind::kDataset,
             "dataset {}: frame {} of episode {} has task_index {}, but meta/tasks.parquet has {} tasks.",
             metadata.root.string(), index, episode, task_of[row], metadata.tasks.size());
    }
  }
}

}  // namespace

Columns read_columns(const Metadata& metadata, std::span<const std::int64_t> episodes) {
  std::vector<bool> selected(metadata.episodes.size(), false);
  std::set<std::pair<std::int64_t, std::int64_t>> numbers;
  std::int64_t num_rows = 0;
  for (const std::int64_t number : episodes) {
    const Episode& episode = metadata.episodes[static_cast<std::size_t>(number)];
    selected[static_cast<std::size_t>(number)] = true;
    numbers.emplace(episode.data_chunk, episode.data_file);
    num_rows += episode.to - episode.from;
  }
  std::vector<ParquetFile> files;
  std::int64_t rows_in_files = 0;
  for (const auto& [chunk, file] : numbers)
    rows_in_files += files.emplace_back(metadata.root / metadata.info.data_file(chunk, file)).num_rows();
  if (rows_in_files < num_rows)
    fail(ErrorKind::kDataset,
         "dataset {}: meta/episodes counts {} frames, the data files hold {}. Copy the dataset again.",
         metadata.root.string(), num_rows, rows_in_files);

  TableFiller filler(metadata, num_rows);
  for (const ParquetFile& file : files) {
    for (int group = 0; group < file.num_row_groups(); ++group) {
      const auto range = file.int_range(group, "episode_index");
      if (range) {
        const auto first = std::lower_bound(episodes.begin(), episodes.end(), range->first);
        if (first == episodes.end() || *first > range->second) continue;
      }
      const std::shared_ptr<arrow::Table> table = file.read_row_group(group, filler.names());
      std::vector<std::int64_t> episode_of_row(static_cast<std::size_t>(table->num_rows()));
      copy_values(*table->GetColumnByName("episode_index"), {}, episode_of_row.data(), file.path());
      for (const Run& run : selected_runs(episode_of_row, selected, file.path()))
        filler.append(*table->Slice(run.begin, run.end - run.begin), file.path());
    }
  }
  if (filler.filled() != num_rows)
    fail(ErrorKind::kDataset,
         "dataset {}: meta/episodes counts {} frames in the selected episodes, the data files hold {}.",
         metadata.root.string(), num_rows, filler.filled());
  Columns columns = filler.take();
  check_rows(metadata, episodes, columns);
  return columns;
}

}  // namespace lerobot::data
