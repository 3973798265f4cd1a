#include "resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assemble.hpp"
#include "lerobot/config/train_json.hpp"
#include "lerobot/core/error.hpp"
#include "sources.hpp"

namespace lerobot::config {
namespace fs = std::filesystem;
namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

/// Lays the leaves of a JSON tree out as dotted names.
void flatten(const Json& json, const std::string& prefix, Leaves& leaves) {
  if (!json.is_object() || json.empty()) {
    leaves.emplace_back(prefix, json.dump());
    return;
  }
  for (const auto& [key, value] : json.items()) flatten(value, prefix.empty() ? key : prefix + '.' + key, leaves);
}

Leaves leaves_of(const TrainConfig& config) {
  Leaves leaves;
  flatten(to_json(config), "", leaves);
  flatten(to_json(config.run), "", leaves);
  return leaves;
}

/// Why a setting cannot take effect on a resumed run; empty when it can.
std::string_view decided_by(std::string_view name) {
  if (name.starts_with("accelerator.grad_scaler.")) return "loss scaler";
  const bool clipping = name == "optimizer.grad_clip_norm" || name == "optimizer.type";
  return name.starts_with("optimizer.") && !clipping ? "optimizer" : "";
}

}  // namespace

std::optional<fs::path> newest_checkpoint(const fs::path& output_dir) {
  std::error_code error;
  std::optional<fs::path> newest;
  std::string highest;
  for (fs::directory_iterator it(output_dir / "checkpoints", error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    const bool number =
        !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number || it->is_symlink(error)) continue;
    name.erase(0, std::min(name.find_first_not_of('0'), name.size() - 1));
    const bool higher = name.size() != highest.size() ? name.size() > highest.size() : name > highest;
    if (!higher || !fs::exists(it->path() / "pretrained_model" / "train_config.json", error) ||
        !fs::is_directory(it->path() / "training_state", error))
      continue;
    highest = name;
    newest = it->path();
  }
  return newest;
}

fs::path checkpoint_of(const fs::path& config_file) {
  fs::path folder = config_file.parent_path();
  if (folder.empty() || folder == ".") folder = fs::absolute(config_file).parent_path();
  const fs::path checkpoint = folder.parent_path();
  std::error_code error;
  const fs::path target = fs::read_symlink(checkpoint, error);
  if (error) return checkpoint;
  return target.is_absolute() ? target : (checkpoint.parent_path() / target).lexically_normal();
}

void add_run_settings(Json& file, const fs::path& checkpoint) {
  const fs::path path = checkpoint / "training_state" / "run_settings.json";
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const Json stored = read_tokens(path);
  const Json known = to_json(RunSettings{});
  for (const auto& [key, value] : stored.items()) {
    if (!known.contains(key))
      fail(ErrorKind::kCheckpoint, "{}: the key \"{}\" is not valid for run settings.", path.string(), key);
    if (!file.contains(key)) file[key] = value;
  }
}

void list_overrides(const Json& file, const fs::path& source, const std::vector<Node>& schema,
                    const Arguments& arguments, ParsedTrain& result) {
  TrainConfig stored;
  naming_file(source, {}, [&] { stored = config_from_tokens(file, schema); });
  const Leaves before = leaves_of(stored);
  for (const auto& [name, value] : leaves_of(result.config)) {
    const Flag setting{name, "", ""};
    const bool flagged = std::any_of(arguments.flags.begin(), arguments.flags.end(),
                                     [&](const Flag& flag) { return setting.is_of(flag.name); });
    if (!flagged || name == "resume" || name == "policy.pretrained_path") continue;
    const auto old = std::find_if(before.begin(), before.end(), [&](const auto& leaf) { return leaf.first == name; });
    const std::string old_value = old == before.end() ? "null" : old->second;
    if (old_value == value) continue;
    result.overrides.push_back({name, old_value, value});
    if (const std::string_view state = decided_by(name); !state.empty())
      result.warnings.push_back(
          fmt::format("{}={} has no effect on a resumed run: the state of the {} in the checkpoint holds {}.", name,
                      value, state, old_value));
  }
}

}  // namespace lerobot::config
