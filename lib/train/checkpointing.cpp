#include "checkpointing.hpp"

#include <torch/torch.h>

#include <filesystem>

#include "lerobot/comm/comm.hpp"
#include "lerobot/config/train_json.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/json.hpp"
#include "memory.hpp"
#include "publish.hpp"

namespace lerobot::train {
namespace fs = std::filesystem;
namespace {

checkpoint::CheckpointFormat format_of(config::CheckpointFormat format) {
  switch (format) {
    case config::CheckpointFormat::kDcp:
      return checkpoint::CheckpointFormat::kDcp;
    case config::CheckpointFormat::kSafetensorsDcp:
      return checkpoint::CheckpointFormat::kSafetensorsDcp;
    case config::CheckpointFormat::kSafetensors:
      break;
  }
  return checkpoint::CheckpointFormat::kSafetensors;
}

checkpoint::TrainingStep training_step(const Run& run) {
  const config::ParallelismConfig& p = run.config.parallelism;
  const data::Progress& now = run.position.progress;
  const data::Progress& window = run.position.micro_step == 0 ? now : run.position.window_start;
  return {.step = run.position.step,
          .dp_world_size = run.dp_world(),
          .batch_size = run.config.batch_size,
          .grad_accum_steps = run.config.accelerator.gradient_accumulation.steps,
          .mixed_precision = std::string(config::text(run.config.accelerator.mixed_precision)),
          .parallelism = checkpoint::Parallelism{p.dp_replicate, p.dp_shard, p.context_parallel.ring_degree,
                                                 p.context_parallel.ulysses_degree},
          .progress = checkpoint::Progress{.epoch = now.epoch,
                                           .samples_in_epoch = now.samples_in_epoch,
                                           .total_samples = now.total_samples,
                                           .window_start_step = run.position.step - run.position.micro_step,
                                           .window_start_epoch = window.epoch,
                                           .window_start_samples_in_epoch = window.samples_in_epoch}};
}

void write_pretrained_files(const Run& run, const fs::path& directory) {
  using formats::dump_python;
  formats::write_file_atomically(directory / "config.json", dump_python(run.config.policy.settings, 4, true));
  formats::write_file_atomically(directory / "train_config.json", dump_python(config::to_json(run.config), 4, true));
  run.preprocessor->save(directory);
  run.postprocessor->save(directory);
}

std::unique_ptr<checkpoint::CheckpointManager> make_manager(const Run& run, const fs::path& directory) {
  return std::make_unique<checkpoint::CheckpointManager>(
      checkpoint::ManagerOptions{.directory = directory,
                                 .format = format_of(run.config.checkpoint_format),
                                 .keep_last = static_cast<int>(run.config.run.keep_last)},
      checkpoint::Ranks{
          .world = run.context.world, .shard = run.layout->norm_group(), .replica_rank = run.layout->replica_rank()},
      run.logger);
}

void write_checkpoint(Run& run) {
  constexpr auto naming = optim::StateNaming::kIndex;  // gathered, so that any layout can go on from it
  checkpoint::CheckpointContents contents;
  contents.total_steps = run.config.steps;
  contents.training_step = training_step(run);
  contents.model = run.layout->model_state();
  contents.optimizers.push_back({"", run.optimizer->state_dict(naming), run.optimizer->param_groups(naming)});
  if (run.schedule) contents.scheduler = run.schedule->state();
  contents.run_settings = config::to_json(run.config.run);
  contents.rng = run.rng;
  contents.rank_rng = checkpoint::capture_torch_rng();
  if (run.position.micro_step > 0) contents.rank_rng.window_start_cpu = run.position.window_rng;
  contents.write_model_files = [&run](const fs::path& directory) { write_pretrained_files(run, directory); };
  run.last_saved = run.manager->save(contents);
}

}  // namespace

void save_checkpoint(Run& run) {
  if (!run.manager) run.manager = make_manager(run, fs::path(*run.config.output_dir) / "checkpoints");
  write_checkpoint(run);
}

namespace {

/// Publishes the final weights from the last checkpoint, or from one made for this purpose. Collective.
void publish(Run& run) {
  const fs::path scratch = fs::path(*run.config.output_dir) / "hub/.staging";
  fs::path folder = run.last_saved;
  if (folder.empty()) {
    run.manager = make_manager(run, scratch);
    write_checkpoint(run);
    folder = run.last_saved;
  }
  comm::on_every_rank(*run.context.world, ErrorKind::kConfig, "publish", [&] {
    if (!run.is_main()) return;
    stage_for_hub(run, folder / "pretrained_model");
    fs::remove_all(scratch);
  });
}

}  // namespace

void finish(Run& run) {
  at::Tensor peak = torch::tensor({peak_resident_mb()}, torch::kDouble);
  comm::all_reduce(*run.context.world, peak, c10d::ReduceOp::MAX);
  if (run.config.policy.push_to_hub()) publish(run);
  comm::barrier(*run.context.world);
  run.logger.info("Peak resident memory per rank: {:.0f} MB", peak.item<double>());
}

}  // namespace lerobot::train
