#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lerobot::test {

/// One camera of a written dataset.
struct WrittenCamera {
  std::string key = "observation.images.front";
  bool video = true;
  bool depth = false;  ///< 16-bit gray PNG, pixel = frame number; only with video = false
  int height = 32, width = 32;
  std::vector<int> file_of_episode = {};  ///< empty: all episodes in file 0
  int gop = 12;                           ///< distance of key frames; x264 puts B-frames between them
};

/// A small LeRobotDataset v3.0 to write. Frame f (absolute) has observation.state [f, 2f] and action [f, -f, 0.5f].
struct WrittenDataset {
  int fps = 10;
  std::vector<std::int64_t> lengths = {};          ///< frames of each episode
  std::vector<std::int64_t> task_of_episode = {};  ///< empty: task 0 for all
  std::vector<int> data_file_of_episode = {};      ///< empty: all in file 0
  std::vector<WrittenCamera> cameras = {};
  std::map<std::int64_t, double> timestamp_shift = {};  ///< absolute frame -> seconds added to its row's timestamp
  std::string codebase_version = "v3.0";
  /// Gray level of a frame's picture. Default: 20 + 3 * (frame mod 70).
  std::function<int(std::int64_t frame)> level = {};
};

/// The gray level that the default `level` gives.
[[nodiscard]] int default_level(std::int64_t frame);

/// Writes data/, meta/ and videos/ below `root`. Videos are lossless RGB h264.
void write_dataset(const std::filesystem::path& root, const WrittenDataset& dataset);

/// A PNG of one gray level, RGB or 16-bit gray.
[[nodiscard]] std::vector<std::uint8_t> encode_png(int height, int width, int level, bool gray16);

}  // namespace lerobot::test
