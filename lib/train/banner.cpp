#include "banner.hpp"

#include "lerobot/train/metrics.hpp"

namespace lerobot::train {
namespace {

std::int64_t numel(const mesh::TensorSlice& slice) {
  std::int64_t n = 1;
  for (const std::int64_t size : slice.global_shape) n *= size;
  return n;
}

}  // namespace

void print_banner(const Run& run) {
  log::Logger& log = run.logger;
  const config::TrainConfig& config = run.config;
  std::int64_t learnable = 0, total = 0;
  for (const auto& [name, slice] : run.layout->parameters()) {
    total += numel(slice);
    if (slice.local.requires_grad()) learnable += numel(slice);
  }
  const auto big = [](std::int64_t n) { return format_big_number(static_cast<double>(n)); };
  const std::int64_t accumulation = config.accelerator.gradient_accumulation.steps;
  const std::int64_t effective = config.batch_size * run.dp_world() * accumulation;
  log.info("Output dir: {}", *config.output_dir);
  log.info("cfg.steps={} ({})", config.steps, big(config.steps));
  log.info("dataset.num_frames={} ({})", run.train_frames, big(run.train_frames));
  log.info("dataset.num_episodes={}", run.train_episodes);
  log.info("Effective batch size: {} x {} dp workers x {} grad accum = {} (topology: dp_replicate={}, dp_shard={})",
           config.batch_size, run.dp_world(), accumulation, effective, config.parallelism.dp_replicate,
           config.parallelism.dp_shard);
  log.info("num_learnable_params={} ({})", learnable, big(learnable));
  log.info("num_total_params={} ({})", total, big(total));
  for (const auto& line : run.layout->description()) log.info("{}", line);
  log.info("Start offline training on a fixed dataset, with effective batch size: {}", effective);
}

}  // namespace lerobot::train
