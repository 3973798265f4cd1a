#include "lerobot/checkpoint/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lerobot/core/error.hpp"

namespace lerobot::checkpoint {

namespace fs = std::filesystem;

std::string step_directory_name(std::int64_t step, std::int64_t total_steps) {
  const int width = std::max(6, static_cast<int>(std::to_string(total_steps).size()));
  return fmt::format("{:0{}}", step, width);
}

std::optional<std::int64_t> step_of_directory_name(std::string_view name) {
  std::int64_t step = 0;
  if (name.empty() || name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return step;
}

std::optional<fs::path> newest_checkpoint(const fs::path& checkpoints_dir) {
  std::optional<fs::path> newest;
  std::int64_t newest_step = -1;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints_dir, error)) {
    const auto step = step_of_directory_name(entry.path().filename().string());
    if (!step || *step <= newest_step || !fs::is_regular_file(entry.path() / kTrainingStateDir / kTrainingStepFile))
      continue;
    newest_step = *step;
    newest = entry.path();
  }
  return newest;
}

ResumePaths resolve_resume_path(const fs::path& config_path) {
  std::error_code error;
  const fs::path real = fs::canonical(config_path, error);
  if (error)
    fail(ErrorKind::kCheckpoint,
         "resume: config_path {}: no such file or directory; hub download is not available. Give "
         "the train_config.json or the pretrained_model folder of a checkpoint.",
         config_path.string());
  fs::path pretrained = real;
  if (fs::is_regular_file(real))
    pretrained = real.parent_path();
  else if (fs::is_directory(real / kPretrainedModelDir))
    pretrained = real / kPretrainedModelDir;
  ResumePaths paths{pretrained.parent_path(), pretrained, pretrained / kTrainConfigFile};
  if (fs::is_regular_file(real)) paths.train_config = real;
  if (!fs::is_regular_file(paths.train_config))
    fail(ErrorKind::kCheckpoint,
         "resume: {}: no such file or directory. config_path is {}; expected the train_config.json "
         "or the pretrained_model folder of a checkpoint.",
         paths.train_config.string(), config_path.string());
  return paths;
}

}  // namespace lerobot::checkpoint
