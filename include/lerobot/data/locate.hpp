#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace lerobot::data {

/// Reads an environment variable; absent or empty gives nothing.
using ReadEnv = std::function<std::optional<std::string>(const char* name)>;
[[nodiscard]] std::optional<std::string> read_env(const char* name);

struct DatasetLocation {
  std::optional<std::filesystem::path> root = {};  ///< given: the dataset itself
  std::string repo_id = {};                        ///< else looked up below $HF_LEROBOT_HOME
  std::optional<std::string> revision = {};        ///< of a downloaded snapshot; "v3.0" by default
};

/// The directory of a dataset on this machine: `root`, or $HF_LEROBOT_HOME/<repo_id>, or a downloaded snapshot in
/// $HF_LEROBOT_HOME/hub. Nothing is downloaded.
///
/// Throws: Error{kDataset} naming every place that was tried; Error{kConfig} when LEROBOT_HOME (the former name) is
/// set.
[[nodiscard]] std::filesystem::path find_dataset(const DatasetLocation& where, const ReadEnv& env = read_env);

}  // namespace lerobot::data
