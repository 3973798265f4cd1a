#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lerobot/data/info.hpp"
#include "lerobot/data/stats.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::data {

/// Where one episode lies in one camera's files.
struct EpisodeVideo {
  std::int64_t chunk_index = 0, file_index = 0;
  double from_timestamp = 0;  ///< seconds inside the file
};

/// One row of meta/episodes.
struct Episode {
  std::int64_t from = 0, to = 0;  ///< absolute frame numbers, half-open
  std::int64_t data_chunk = 0, data_file = 0;
  std::vector<std::string> tasks;
};

/// Everything under meta/.
struct Metadata {
  std::filesystem::path root;
  DatasetInfo info;
  Stats stats;
  std::vector<std::string> tasks;                           ///< by task_index
  std::vector<Episode> episodes;                            ///< by episode_index
  std::map<std::string, std::vector<EpisodeVideo>> videos;  ///< video key -> one entry per episode
};

/// Reads meta/ of a dataset and checks that its files agree with each other.
///
/// Throws: Error{kDataset} naming the file, the column or key, and the values that disagree.
[[nodiscard]] Metadata read_metadata(const std::filesystem::path& root, log::Logger& logger);

}  // namespace lerobot::data
