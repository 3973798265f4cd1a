#include "lerobot/checkpoint/manager.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "checkpoint/model_file.hpp"
#include "checkpoint/tensor_file.hpp"
#include "lerobot/comm/agree.hpp"
#include "lerobot/comm/collectives.hpp"
#include "lerobot/comm/groups.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/commit_directory.hpp"
#include "lerobot/formats/json.hpp"
#include "lerobot/formats/manifest.hpp"

namespace lerobot::checkpoint {

namespace fs = std::filesystem;

namespace {

template <typename Step>
void agreed(const comm::ProcessGroupPtr& world, std::string_view what, Step&& step) {
  if (world)
    comm::on_every_rank(*world, ErrorKind::kCheckpoint, what, std::forward<Step>(step));
  else
    step();
}

bool everywhere(const comm::ProcessGroupPtr& world, bool here) {
  if (!world) return here;
  const at::Tensor any_not = at::full({1}, here ? 0 : 1, at::kLong);
  comm::all_reduce(*world, any_not, c10d::ReduceOp::MAX);
  return any_not.item<std::int64_t>() == 0;
}

void write_json(const fs::path& path, const Json& value) {
  formats::write_file_atomically(path, formats::dump_python(value, 4, false));
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(ErrorKind::kCheckpoint, "checkpoint: cannot create {}: {}.", path.string(), error.message());
}

}  // namespace

CheckpointFormat parse_checkpoint_format(std::string_view text) {
  for (const auto format : {CheckpointFormat::kSafetensors, CheckpointFormat::kDcp, CheckpointFormat::kSafetensorsDcp})
    if (to_string(format) == text) return format;
  fail(ErrorKind::kConfig, "checkpoint_format: got \"{}\"; expected safetensors, dcp or safetensors_dcp.", text);
}

std::string_view to_string(CheckpointFormat format) {
  switch (format) {
    case CheckpointFormat::kSafetensors:
      return "safetensors";
    case CheckpointFormat::kDcp:
      return "dcp";
    case CheckpointFormat::kSafetensorsDcp:
      return "safetensors_dcp";
  }
  fail(ErrorKind::kInternal, "checkpoint format {} is unknown.", static_cast<int>(format));
}

CheckpointManager::CheckpointManager(ManagerOptions options, Ranks ranks, log::Logger& logger)
    : options_(std::move(options)), ranks_(std::move(ranks)), logger_(logger) {
  if (!ranks_.shard && options_.format != CheckpointFormat::kSafetensors)
    fail(ErrorKind::kConfig,
         "checkpoint_format={} needs a sharded run, but this one is not: set parallelism.dp_shard to 2 "
         "or more, or use checkpoint_format=safetensors.",
         to_string(options_.format));
}

bool CheckpointManager::is_main() const { return !ranks_.world || ranks_.world->getRank() == 0; }

fs::path CheckpointManager::save(const CheckpointContents& contents) {
  const fs::path step_dir = options_.directory / step_directory_name(contents.training_step.step, contents.total_steps);
  const fs::path staging = formats::CommitDirectory::staging_of(step_dir);
  std::optional<comm::PatientPhase> patience;
  if (ranks_.world) patience.emplace(ranks_.world, "checkpoint", options_.timeout_s);

  std::optional<formats::CommitDirectory> folder;
  agreed(ranks_.world, "checkpoint", [&] {
    if (!is_main()) return;
    make_directories(options_.directory);
    if (!std::exchange(swept_, true))
      for (const fs::path& path : formats::CommitDirectory::remove_stale(options_.directory))
        logger_.info("Removed {}, left behind by a save that did not finish", path.string());
    const fs::path last = options_.directory / kLastLink;
    if (fs::exists(fs::symlink_status(last)) && !fs::is_symlink(last))
      fail(ErrorKind::kCheckpoint,
           "checkpoint: {}: file exists and is not a link, so it is not replaced. Move it away.", last.string());
    folder.emplace(step_dir);
    make_directories(staging / kPretrainedModelDir);
    make_directories(staging / kTrainingStateDir);
  });

  FirstFailure failure;
  write_gathered_file(staging / kPretrainedModelDir / contents.model_file, contents.model, ranks_, is_main(), failure,
                      {{"format", "pt"}});
  for (const auto& optimizer : contents.optimizers) {
    const fs::path where = staging / kTrainingStateDir / optimizer.name;
    if (is_main()) failure.run([&] { make_directories(where); });
    write_gathered_file(where / kOptimizerStateFile, optimizer.state, ranks_, is_main(), failure);
  }
  const TorchRngStates rank_rng = gather_torch_rng(contents.rank_rng, ranks_.world);
  const bool finite = everywhere(ranks_.world, all_finite(contents.model));

  agreed(ranks_.world, "checkpoint", [&] {
    failure.rethrow();
    if (!is_main()) return;
    if (contents.write_model_files) contents.write_model_files(staging / kPretrainedModelDir);
    write_state(staging / kTrainingStateDir, contents);
    write_rank_rng_states(staging / kTrainingStateDir / kRankRngStatesFile, rank_rng);
    formats::describe_directory(staging).write(staging);
    folder->commit();
    if (!finite) {
      logger_.warning("Checkpoint {} holds weights that are not finite; last stays where it is", step_dir.string());
      return;
    }
    formats::replace_symlink(options_.directory / kLastLink, step_dir.filename());
    remove_old(step_dir);
  });
  return step_dir;
}

void CheckpointManager::write_state(const fs::path& directory, const CheckpointContents& contents) const {
  for (const auto& [name, state, groups] : contents.optimizers) {
    (void)state;  // written already, gathered
    const fs::path where = name.empty() ? directory : directory / name;
    write_json(where / kOptimizerGroupsFile, groups);
  }
  write_json(directory / kTrainingStepFile, to_json(contents.training_step));
  RngState rng = contents.rng;
  rng.torch = contents.rank_rng.cpu;
  rng.torch_cuda = contents.rank_rng.cuda;
  write_rng_state(directory / kRngStateFile, rng);
  if (contents.scheduler) write_json(directory / kSchedulerFile, *contents.scheduler);
  if (contents.scaler) write_json(directory / kScalerFile, *contents.scaler);
  if (contents.run_settings) write_json(directory / kRunSettingsFile, *contents.run_settings);
  if (contents.write_state_files) contents.write_state_files(directory);
}

void CheckpointManager::remove_old(const fs::path& newest) const {
  if (options_.keep_last <= 0) return;
  std::vector<std::pair<std::int64_t, fs::path>> steps;
  for (const auto& entry : fs::directory_iterator(options_.directory))
    if (const auto step = step_of_directory_name(entry.path().filename().string()); step && entry.path() != newest)
      steps.emplace_back(*step, entry.path());
  std::sort(steps.begin(), steps.end());
  const auto kept_besides_newest = static_cast<std::size_t>(options_.keep_last - 1);
  for (std::size_t i = 0; i + kept_besides_newest < steps.size(); ++i) {
    // under the temporary name first: a crash in the middle of the removal leaves nothing that looks complete
    const fs::path doomed = formats::CommitDirectory::staging_of(steps[i].second);
    std::error_code error;
    fs::remove_all(doomed, error);
    fs::rename(steps[i].second, doomed, error);
    if (!error) fs::remove_all(doomed, error);
    if (error) logger_.warning("Could not remove the old checkpoint {}: {}", steps[i].second.string(), error.message());
  }
}

}  // namespace lerobot::checkpoint
