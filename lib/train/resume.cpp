#include "resume.hpp"

#include <torch/torch.h>

#include <fmt/ranges.h>

#include "lerobot/core/error.hpp"

namespace lerobot::train {
namespace {

/// Every parameter and persistent buffer of the policy, whole.
mesh::StateDict whole_state(policies::Policy& policy) {
  mesh::StateDict state;
  for (const auto& entry : policy.named_parameters())
    state.push_back({entry.key(), {.local = entry.value().detach(), .global_shape = entry.value().sizes().vec()}});
  for (const auto& entry : policy.named_buffers())
    state.push_back({entry.key(), {.local = entry.value().detach(), .global_shape = entry.value().sizes().vec()}});
  return state;
}

checkpoint::TrainingStep settings_now(const Run& run) {
  const config::ParallelismConfig& p = run.config.parallelism;
  return {.step = 0,
          .dp_world_size = run.dp_world(),
          .batch_size = run.config.batch_size,
          .grad_accum_steps = run.config.accelerator.gradient_accumulation.steps,
          .mixed_precision = std::string(config::text(run.config.accelerator.mixed_precision)),
          .parallelism = checkpoint::Parallelism{p.dp_replicate, p.dp_shard, p.context_parallel.ring_degree,
                                                 p.context_parallel.ulysses_degree},
          .progress = {}};
}

}  // namespace

void load_policy_weights(Run& run, const std::string& directory) {
  const checkpoint::ModelReader reader(directory);
  const checkpoint::LoadReport report = reader.load(whole_state(*run.policy));
  if (!report.missing.empty())
    run.logger.warning("{}: no weights for {}; they stay as initialised", directory, fmt::join(report.missing, ", "));
  if (!report.unexpected.empty())
    run.logger.warning("{}: weights that this policy does not have: {}", directory, fmt::join(report.unexpected, ", "));
}

Resumed read_resumed(Run& run) {
  Resumed resumed{.state = std::make_unique<checkpoint::TrainingStateReader>(*run.config.checkpoint_path), .step = {}};
  resumed.state->require_resumable(run.config.parallelism.sharded());
  resumed.step = resumed.state->training_step();
  const auto differing = checkpoint::differing_settings(resumed.step, settings_now(run));
  if (!differing.empty())
    run.logger.warning("settings differ from the checkpoint {}: {}", *run.config.checkpoint_path,
                       fmt::join(differing, ", "));
  resumed.same_ranks = resumed.step.dp_world_size.value_or(run.dp_world()) == run.dp_world() &&
                       resumed.step.batch_size.value_or(run.config.batch_size) == run.config.batch_size;
  return resumed;
}

void resume_position(Run& run, const Resumed& resumed) {
  const checkpoint::TrainingStep& saved = resumed.step;
  Position& position = run.position;
  const data::BatchLayout recorded{.num_frames = run.sampler_frames,
                                   .batch_size = saved.batch_size.value_or(run.config.batch_size),
                                   .dp_world = saved.dp_world_size.value_or(run.dp_world())};
  const data::BatchLayout current{
      .num_frames = run.sampler_frames, .batch_size = run.config.batch_size, .dp_world = run.dp_world()};
  position.step = saved.step;
  if (saved.progress) {
    const checkpoint::Progress& p = *saved.progress;
    position.progress = {.epoch = p.epoch, .samples_in_epoch = p.samples_in_epoch, .total_samples = p.total_samples};
    const std::int64_t replays = saved.step - p.window_start_step;
    const std::int64_t samples = replays * recorded.batch_size * recorded.dp_world;
    position.window_start = {.epoch = p.window_start_epoch,
                             .samples_in_epoch = p.window_start_samples_in_epoch,
                             .total_samples = p.total_samples - samples};
    // With other batches the window's samples are dealt anew; the last round may reach past the saved position.
    const std::int64_t per_step = current.batch_size * current.dp_world;
    position.num_replays = resumed.same_ranks ? replays : (samples + per_step - 1) / per_step;
  } else {
    position.progress = data::progress_of_step(saved.step, recorded);
    position.window_start = position.progress;
  }
  if (position.num_replays > 0)
    run.logger.info("The checkpoint lies inside an accumulation window: {} micro-batches are replayed, uncounted",
                    position.num_replays);
  else
    position.window_start = position.progress;
  position.dealt = position.window_start;
  for (const auto& warning : data::resume_warnings(recorded, current)) run.logger.warning("{}", warning);
  run.logger.info("Resuming data order at epoch {}, sample {}", position.progress.epoch,
                  position.progress.samples_in_epoch);
}

void resume_state(Run& run, const Resumed& resumed) {
  const bool by_index = resumed.state->optimizer_form() == checkpoint::OptimizerForm::kByIndex;
  const auto naming = by_index ? optim::StateNaming::kIndex : optim::StateNaming::kFqn;
  run.optimizer->load_param_groups(resumed.state->optimizer_groups(), naming, "training_state");
  const mesh::StateDict entries = run.optimizer->allocate_state(
      naming, [&](const std::string& entry) { return resumed.state->has_optimizer_entry(entry); });
  resumed.state->load_optimizer_state(entries);
  if (run.schedule) run.schedule->load_state(resumed.state->json("scheduler_state.json"), "scheduler_state.json");
}

void start_random_stream(Run& run, const Resumed* resumed) {
  const auto seed = static_cast<std::uint64_t>(run.config.seed.value_or(0));
  if (resumed == nullptr) {
    checkpoint::seed_python_and_numpy(run.rng, seed);
    if (run.config.seed) checkpoint::seed_rank_stream(seed, run.dp_rank());
    return;
  }
  run.rng = resumed->state->rng_state();
  const auto ranks = resumed->state->rank_rng_states();
  if (ranks && resumed->same_ranks && ranks->cpu.size(0) == run.dp_world()) {
    const at::Tensor& states = run.position.num_replays > 0 ? ranks->window_start_cpu : ranks->cpu;
    const at::Tensor& cuda = run.position.num_replays > 0 ? ranks->window_start_cuda : ranks->cuda;
    checkpoint::restore_torch_rng(states[run.dp_rank()], cuda.defined() ? cuda[run.dp_rank()] : at::Tensor(),
                                  "rng_state_ranks.safetensors");
  } else if (!ranks && resumed->same_ranks && run.dp_world() == 1) {
    checkpoint::restore_torch_rng(run.rng.torch, run.rng.torch_cuda, "rng_state.safetensors");
  } else {
    checkpoint::seed_rank_stream(seed, run.dp_rank(), resumed->step.step);
  }
}

}  // namespace lerobot::train
