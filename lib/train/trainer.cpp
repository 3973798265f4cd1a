#include "lerobot/train/trainer.hpp"

#include <torch/torch.h>

#include <chrono>

#include "banner.hpp"
#include "checkpointing.hpp"
#include "evaluate.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/train/metrics.hpp"
#include "lerobot/train/progress_bar.hpp"
#include "non_finite.hpp"
#include "setup.hpp"

namespace lerobot::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool is_due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

}  // namespace

/// A run that is set up, and where its loop stands.
struct Trainer::State {
  std::unique_ptr<Run> owned;
  Run& run;
  std::int64_t num_skipped = 0;
  std::optional<MetricsFile> metrics_file;

  explicit State(std::unique_ptr<Run> set_up) : owned(std::move(set_up)), run(*owned) {}

  void one_step(MetricsTracker& tracker, bool is_replay);
  std::optional<double> update(std::int64_t step, bool& is_skipped);
  void log_line(MetricsTracker& tracker, ProgressBar& bar);
  void evaluate_held_out(ProgressBar& bar);
  void save(ProgressBar& bar);
};

Trainer::Trainer(config::ParsedTrain parsed, Context context, const policies::Registry& registry, log::Logger& logger,
                 Seams seams)
    : state_(
          std::make_unique<State>(set_up(std::move(parsed), std::move(context), registry, logger, std::move(seams)))) {}

Trainer::~Trainer() = default;

policies::Policy& Trainer::policy() { return *state_->run.policy; }

std::int64_t Trainer::step() const { return state_->run.position.step; }

/// Clips and updates. Gives the norm from before clipping when clipping is on and the update was made.
std::optional<double> Trainer::State::update(std::int64_t step, bool& is_skipped) {
  const double max_norm = run.config.optimizer->grad_clip_norm;
  const optim::GradNorm norm =
      max_norm > 0 ? optim::clip_grad_norm(run.optimizer->gradients(), max_norm, run.layout->norm_group())
                   : optim::global_grad_norm(run.optimizer->gradients(), run.layout->norm_group());
  is_skipped = !may_update(norm, run.config.run.on_nonfinite, step, num_skipped, run.logger);
  if (!is_skipped) {
    run.optimizer->step();
    run.policy->update();
  }
  run.optimizer->zero_grad();
  return max_norm > 0 && !is_skipped ? std::optional(norm.norm) : std::nullopt;
}

void Trainer::State::one_step(MetricsTracker& tracker, bool is_replay) {
  const Clock::time_point start = Clock::now();
  Position& position = run.position;
  if (position.micro_step == 0) run.begin_window();

  data::Batch raw = run.batches->next();
  const double dataloading_s = run.batches->last_wait_s();
  run.deal();
  StepRecord record;
  if (run.seams.on_step) {
    const at::Tensor index = raw.tensors.at("index").contiguous();
    record.index.assign(index.const_data_ptr<std::int64_t>(), index.const_data_ptr<std::int64_t>() + index.numel());
  }
  const Clock::time_point prepare = Clock::now();
  const policies::Batch batch = run.prepare(std::move(raw));
  const double preprocessing_s = seconds_since(prepare);

  const Clock::time_point update_start = Clock::now();
  const std::int64_t accumulation = run.config.accelerator.gradient_accumulation.steps;
  const bool is_last = position.micro_step + 1 >= accumulation;
  policies::PolicyOutput output;
  {
    const std::unique_ptr<NoSyncScope> hold = is_last ? nullptr : run.layout->no_sync();
    output = run.policy->forward(batch);
    (accumulation == 1 ? output.loss : output.loss / static_cast<double>(accumulation)).backward();
  }
  bool is_skipped = false;
  const std::int64_t step = position.step + (is_replay ? 0 : 1);
  const std::optional<double> grad_norm = is_last ? update(step, is_skipped) : std::nullopt;
  position.micro_step = is_last ? 0 : position.micro_step + 1;

  if (run.seams.on_step) {
    record.step = step;
    record.is_update = is_last;
    record.is_skipped = is_skipped;
    record.is_replay = is_replay;
    record.loss = output.loss.item<double>();
    for (const auto& [key, value] : output.outputs) record.outputs.emplace_back(key, value.item<double>());
    record.grad_norm = grad_norm;
    for (const auto& group : run.optimizer->groups()) record.lr.push_back(group.options.lr);
  }
  // A replayed micro-batch was counted, scheduled and logged before the stop.
  if (!is_replay) {
    if (run.schedule) run.schedule->step();
    run.advance();
    tracker.step();
    tracker.at("loss").update(output.loss);
    tracker.update_outputs(output.outputs);
    if (grad_norm) tracker.at("grad_norm").update(*grad_norm);
    tracker.at("lr").update(run.optimizer->groups().front().options.lr);
    tracker.at("dataloading_s").update(dataloading_s);
    tracker.at("preprocessing_s").update(preprocessing_s);
    tracker.at("update_s").update(seconds_since(update_start));
    tracker.at("step_s").update(seconds_since(start));
  }
  if (run.seams.on_step) run.seams.on_step(record);
}

void Trainer::State::log_line(MetricsTracker& tracker, ProgressBar& bar) {
  tracker.reduce(*run.context.world);
  tracker.update_throughput();
  bar.clear();
  run.logger.info("{}", tracker.line());
  if (metrics_file) metrics_file->write(tracker.to_json());
  tracker.reset();
}

void Trainer::State::evaluate_held_out(ProgressBar& bar) {
  const double loss = held_out_loss(run);
  bar.clear();
  run.logger.info("step {}: eval_loss={:.4f}", run.position.step, loss);
  if (metrics_file) metrics_file->write(Json{{"step", run.position.step}, {"eval_loss", loss}});
}

void Trainer::State::save(ProgressBar& bar) {
  bar.clear();
  run.logger.info("Checkpoint policy after step {}", run.position.step);
  save_checkpoint(run);
}

void Trainer::run() {
  State& s = *state_;
  Run& run = s.run;
  const config::TrainConfig& config = run.config;
  const bool is_main = run.context.world->getRank() == 0;
  if (is_main) {
    run.create_output_dir();
    s.metrics_file.emplace(std::filesystem::path(*config.output_dir) / "metrics.jsonl");
  }
  print_banner(run);
  run.policy->train();
  MetricsTracker tracker({.batch_size = config.batch_size,
                          .dp_world = run.dp_world(),
                          .num_frames = run.train_frames,
                          .num_episodes = run.train_episodes},
                         run.position.step, run.position.progress.total_samples, false, run.device.is_cuda());
  ProgressBar bar(is_main, run.position.step, config.steps);
  for (std::int64_t i = 0; i < run.position.num_replays && run.position.step < config.steps; ++i)
    s.one_step(tracker, true);

  while (run.position.step < config.steps) {
    s.one_step(tracker, false);
    const std::int64_t step = run.position.step;
    bar.update(step);
    if (is_due(config.log_freq, step)) s.log_line(tracker, bar);
    if (is_due(config.eval_steps, step)) s.evaluate_held_out(bar);
    if (config.save_checkpoint && (is_due(config.save_freq, step) || step == config.steps)) s.save(bar);
  }
  bar.clear();
  finish(run);
  run.logger.info("End of training");
}

}  // namespace lerobot::train
