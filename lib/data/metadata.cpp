#include "lerobot/data/metadata.hpp"

#include <algorithm>
#include <cmath>

#include "data/parquet.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace fs = std::filesystem;
namespace {

/// Files <folder>/*/*.parquet in sorted order.
std::vector<fs::path> parquet_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".parquet" && it.depth() == 1) files.push_back(it->path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> read_tasks(const fs::path& root, const DatasetInfo& info) {
  const fs::path path = root / "meta" / "tasks.parquet";
  std::error_code ignored;
  if (info.total_tasks == 0 && !fs::exists(path, ignored)) return {};
  const ParquetFile file(path);
  // pandas wrote its index under its own name before LeRobot (Python) named it.
  const std::string column = file.has("task") ? "task" : "__index_level_0__";
  if (!file.has(column)) fail(ErrorKind::kDataset, "{}: there is no column \"task\".", path.string());
  return file.strings(column);
}

void read_episode_file(const fs::path& path, Metadata& out) {
  const ParquetFile file(path);
  const auto index = file.int64s("episode_index"), length = file.int64s("length");
  const auto from = file.int64s("dataset_from_index"), to = file.int64s("dataset_to_index");
  const auto chunk = file.int64s("data/chunk_index"), data_file = file.int64s("data/file_index");
  auto tasks = file.string_lists("tasks");
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto expected = static_cast<std::int64_t>(out.episodes.size());
    const std::int64_t previous = out.episodes.empty() ? 0 : out.episodes.back().to;
    if (index[i] != expected)
      fail(ErrorKind::kDataset, "{}: row {} is episode {}; expected episode {}.", path.string(), i, index[i], expected);
    if (from[i] < previous || to[i] < from[i] || to[i] - from[i] != length[i])
      fail(ErrorKind::kDataset,
           "{}: episode {} has frames {}..{} and length {}; the episode before ends at {}. Expected to - from = "
           "length, no overlap.",
           path.string(), index[i], from[i], to[i], length[i], previous);
    if (chunk[i] < 0 || data_file[i] < 0)
      fail(ErrorKind::kDataset, "{}: episode {} has data file {}/{}.", path.string(), index[i], chunk[i], data_file[i]);
    out.episodes.push_back({from[i], to[i], chunk[i], data_file[i], std::move(tasks.at(i))});
  }
  for (const Feature& feature : out.info.features) {
    if (feature.kind != ColumnKind::kVideo) continue;
    const std::string prefix = "videos/" + feature.name + "/";
    const auto video_chunk = file.int64s(prefix + "chunk_index"), video_file = file.int64s(prefix + "file_index");
    const auto start = file.doubles(prefix + "from_timestamp");
    std::vector<EpisodeVideo>& videos = out.videos[feature.name];
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (video_chunk[i] < 0 || video_file[i] < 0 || !std::isfinite(start[i]))
        fail(ErrorKind::kDataset, "{}: episode {} of \"{}\" has video file {}/{} from {} s.", path.string(), index[i],
             feature.name, video_chunk[i], video_file[i], start[i]);
      videos.push_back({video_chunk[i], video_file[i], start[i]});
    }
  }
}

}  // namespace

Metadata read_metadata(const fs::path& root, log::Logger& logger) {
  Metadata metadata;
  metadata.root = root;
  metadata.info = read_info(root, logger);
  metadata.stats = read_stats(root);
  metadata.tasks = read_tasks(root, metadata.info);
  const fs::path folder = root / "meta" / "episodes";
  const std::vector<fs::path> files = parquet_files(folder);
  if (files.empty() && metadata.info.total_episodes > 0)
    fail(ErrorKind::kDataset, "{}: no episode files, but meta/info.json counts {} episodes.", folder.string(),
         metadata.info.total_episodes);
  for (const fs::path& file : files) read_episode_file(file, metadata);
  const auto num_episodes = static_cast<std::int64_t>(metadata.episodes.size());
  std::int64_t num_frames = 0;
  for (const Episode& episode : metadata.episodes) num_frames += episode.to - episode.from;
  if (num_episodes != metadata.info.total_episodes || num_frames != metadata.info.total_frames)
    fail(ErrorKind::kDataset,
         "dataset {}: meta/info.json counts {} episodes and {} frames, meta/episodes has {} and {}. Copy the dataset "
         "again.",
         root.string(), metadata.info.total_episodes, metadata.info.total_frames, num_episodes, num_frames);
  return metadata;
}

}  // namespace lerobot::data
