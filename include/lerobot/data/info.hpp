#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/json.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::data {

/// What a column holds, and so how it is read.
enum class ColumnKind { kFloat, kInt, kBool, kImage, kVideo, kString, kLanguage };

/// One entry of `features` in meta/info.json.
struct Feature {
  std::string name;
  std::string dtype;  ///< as written: "float32", "video", …
  ColumnKind kind = ColumnKind::kFloat;
  std::vector<std::int64_t> shape;  ///< cameras: height, width, channels
  Json names;                       ///< array, object of arrays, or null
  Json info;                        ///< encoder facts of a camera; null if absent
  bool is_depth = false;

  [[nodiscard]] bool is_camera() const { return kind == ColumnKind::kImage || kind == ColumnKind::kVideo; }
};

/// meta/info.json of a LeRobotDataset v3.0.
struct DatasetInfo {
  std::string codebase_version;
  std::int64_t fps = 0;
  std::vector<Feature> features;  ///< in file order
  std::int64_t total_episodes = 0, total_frames = 0, total_tasks = 0;
  std::int64_t chunks_size = 1000, data_files_size_in_mb = 100, video_files_size_in_mb = 200;
  std::string data_path;
  std::string video_path;  ///< empty when null
  std::string robot_type;  ///< empty when null
  Json splits;

  /// The feature of this name, or null.
  [[nodiscard]] const Feature* find(std::string_view name) const;
  /// Names of all cameras, in file order. Depth maps are cameras too.
  [[nodiscard]] std::vector<std::string> camera_keys() const;
  /// data_path with the numbers put in, relative to the root.
  [[nodiscard]] std::string data_file(std::int64_t chunk, std::int64_t file) const;
  /// video_path with key and numbers put in, relative to the root.
  [[nodiscard]] std::string video_file(std::string_view key, std::int64_t chunk, std::int64_t file) const;
};

/// Reads and checks <root>/meta/info.json. Unknown keys and an older minor version are warned about.
///
/// Throws: Error{kDataset} naming file and key; for another format version: the version found, the one supported
/// and the root, before anything else of the file is looked at.
[[nodiscard]] DatasetInfo read_info(const std::filesystem::path& root, log::Logger& logger);

}  // namespace lerobot::data
