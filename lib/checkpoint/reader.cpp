#include "lerobot/checkpoint/reader.hpp"

#include <map>
#include <set>
#include <utility>

#include "checkpoint/tensor_file.hpp"
#include "checkpoint/verified_files.hpp"
#include "lerobot/checkpoint/layout.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::checkpoint {

namespace fs = std::filesystem;

struct ModelReader::Files {
  VerifiedFiles files;
  TensorFile model;

  Files(const fs::path& checkpoint, const fs::path& path) : files(checkpoint), model(path, files.listed(path)) {}
};

ModelReader::ModelReader(const fs::path& pretrained_model, std::string_view model_file) {
  const fs::path path = pretrained_model / model_file;
  if (!fs::exists(path))
    fail(ErrorKind::kCheckpoint, "{}: there is no {}. Give the pretrained_model folder of a checkpoint.",
         pretrained_model.string(), model_file);
  files_ = std::make_unique<Files>(pretrained_model.parent_path(), path);
}

ModelReader::~ModelReader() = default;

LoadReport ModelReader::load(const mesh::StateDict& to) const {
  LoadReport report;
  std::set<std::string_view> wanted;
  for (const auto& [name, slice] : to) {
    wanted.insert(name);
    if (files_->model.has(name))
      files_->model.read_into(name, slice);
    else
      report.missing.push_back(name);
  }
  for (const auto& entry : files_->model.file().entries())
    if (!wanted.contains(entry.name)) report.unexpected.push_back(entry.name);
  return report;
}

struct TrainingStateReader::Files {
  VerifiedFiles files;
  fs::path directory;
  std::map<std::string, std::unique_ptr<TensorFile>, std::less<>> optimizers;  ///< opened when first needed

  [[nodiscard]] fs::path of_optimizer(std::string_view name, std::string_view file) const {
    return name.empty() ? directory / file : directory / name / file;
  }
  const TensorFile& optimizer_state(std::string_view name) {
    auto found = optimizers.find(name);
    if (found == optimizers.end()) {
      const fs::path path = of_optimizer(name, kOptimizerStateFile);
      found = optimizers.emplace(name, std::make_unique<TensorFile>(path, files.listed(path))).first;
    }
    return *found->second;
  }
};

TrainingStateReader::TrainingStateReader(const fs::path& checkpoint)
    : files_(std::make_unique<Files>(Files{VerifiedFiles(checkpoint), checkpoint / kTrainingStateDir, {}})) {
  if (!fs::is_directory(files_->directory))
    fail(ErrorKind::kCheckpoint,
         "resume: {} is not a directory. The checkpoint has no state to continue from; its weights "
         "load with --policy.path.",
         files_->directory.string());
}

TrainingStateReader::~TrainingStateReader() = default;

fs::path TrainingStateReader::path(std::string_view file) const { return files_->directory / file; }

bool TrainingStateReader::has(std::string_view file) const { return fs::exists(path(file)); }

Json TrainingStateReader::json(std::string_view file) const { return files_->files.json(path(file)); }

TrainingStep TrainingStateReader::training_step() const {
  return training_step_from_json(json(kTrainingStepFile), path(kTrainingStepFile).string());
}

RngState TrainingStateReader::rng_state() const {
  files_->files.require_intact(path(kRngStateFile));
  return read_rng_state(path(kRngStateFile));
}

std::optional<TorchRngStates> TrainingStateReader::rank_rng_states() const {
  if (has(kRankRngStatesFile)) files_->files.require_intact(path(kRankRngStatesFile));
  return read_rank_rng_states(path(kRankRngStatesFile));
}

void TrainingStateReader::require_resumable(bool run_is_sharded) const {
  if (!run_is_sharded || has(kOptimizerShardsDir) || training_step().parallelism) return;
  fail(ErrorKind::kCheckpoint, "resume: {} is missing.{}", path(kOptimizerShardsDir).string(),
       has(kOptimizerStateFile)
           ? " The checkpoint has the layout of LeRobot 0.6.x or older, which cannot be resumed by a "
             "sharded run; its weights still load with --policy.path."
           : " The checkpoint is incomplete.");
}

OptimizerForm TrainingStateReader::optimizer_form(std::string_view name) const {
  if (fs::exists(files_->of_optimizer(name, kOptimizerStateFile))) return OptimizerForm::kByIndex;
  fail(ErrorKind::kCheckpoint, "resume: there is no {}; the checkpoint has no state of the optimizer.",
       files_->of_optimizer(name, kOptimizerStateFile).string());
}

Json TrainingStateReader::optimizer_groups(std::string_view name) const {
  return files_->files.json(files_->of_optimizer(name, kOptimizerGroupsFile));
}

bool TrainingStateReader::has_optimizer_entry(const std::string& entry, std::string_view name) const {
  return files_->optimizer_state(name).has(entry);
}

void TrainingStateReader::load_optimizer_state(const mesh::StateDict& to, std::string_view name) const {
  const TensorFile& file = files_->optimizer_state(name);
  for (const auto& [entry, slice] : to) file.read_into(entry, slice);
}

}  // namespace lerobot::checkpoint
