#include "lerobot/data/batch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr std::int64_t rounds_for(std::int64_t num_frames, const BatchLayout& layout) {
  return ceil_div(ceil_div(num_frames, layout.batch_size), layout.dp_world);
}
static_assert(rounds_for(11, {11, 2, 2}) == 3 && rounds_for(5, {5, 4, 3}) == 1);

void check(const BatchLayout& layout) {
  if (layout.num_frames < 1 || layout.batch_size < 1 || layout.dp_world < 1)
    fail(ErrorKind::kConfig, "batches: num_frames={}, batch_size={}, dp_world={}; all must be at least 1.",
         layout.num_frames, layout.batch_size, layout.dp_world);
}

}  // namespace

BatchPlan::BatchPlan(const BatchLayout& layout, const Progress& start) : layout_(layout), start_(start) {
  check(layout_);
  if (start_.epoch < 0 || start_.samples_in_epoch < 0 || start_.samples_in_epoch > layout_.num_frames)
    fail(ErrorKind::kConfig,
         "data order: a resume at epoch {}, sample {} is outside an epoch of {} frames. Is the dataset the one of the "
         "checkpoint?",
         start_.epoch, start_.samples_in_epoch, layout_.num_frames);
  rounds_ = rounds_for(layout_.num_frames, layout_);
  if (start_.samples_in_epoch == layout_.num_frames) {
    ++start_.epoch;
    start_.samples_in_epoch = 0;
  }
  first_rounds_ = rounds_for(layout_.num_frames - start_.samples_in_epoch, layout_);
}

Round BatchPlan::round(std::int64_t n) const {
  const std::int64_t stride = layout_.batch_size * layout_.dp_world;
  if (n < first_rounds_) return {start_.epoch, start_.samples_in_epoch + n * stride};
  const std::int64_t later = n - first_rounds_;
  return {start_.epoch + 1 + later / rounds_, later % rounds_ * stride};
}

std::vector<std::int64_t> BatchPlan::positions(const Round& round, std::int64_t dp_rank) const {
  const std::int64_t first = round.begin + dp_rank * layout_.batch_size;
  std::vector<std::int64_t> out(static_cast<std::size_t>(layout_.batch_size));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = (first + static_cast<std::int64_t>(i)) % layout_.num_frames;
  return out;
}

Progress BatchPlan::progress(std::int64_t n) const {
  const Round next = round(n);
  return {next.epoch, next.begin, start_.total_samples + n * layout_.batch_size * layout_.dp_world};
}

Progress progress_of_step(std::int64_t step, const BatchLayout& layout) {
  check(layout);
  const std::int64_t rounds = rounds_for(layout.num_frames, layout), stride = layout.batch_size * layout.dp_world;
  return {step / rounds, std::min(step % rounds * stride, layout.num_frames), step * stride};
}

std::vector<std::string> resume_warnings(const BatchLayout& recorded, const BatchLayout& current) {
  std::vector<std::string> out;
  const auto compare = [&](const char* name, std::int64_t was, std::int64_t is) {
    if (was != is)
      out.push_back(
          fmt::format("resume: {} is {}, the checkpoint was written with {}: the run goes on at the same sample, but "
                      "each rank's batches are others, so there is no sample-exactness per rank",
                      name, is, was));
  };
  compare("dp_world", recorded.dp_world, current.dp_world);
  compare("batch_size", recorded.batch_size, current.batch_size);
  return out;
}

}  // namespace lerobot::data
