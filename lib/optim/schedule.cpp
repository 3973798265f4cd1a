#include "lerobot/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/core/strict_json.hpp"

namespace lerobot::optim {

namespace {

using Factor = std::function<double(std::int64_t)>;

constexpr double kPi = std::numbers::pi;

// The expressions keep the order of operations of the Python sources: the rates then agree to the bit.
double ratio(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

double warmup(std::int64_t s, std::int64_t w) { return ratio(s, std::max<std::int64_t>(1, w)); }

double half_cosine(double angle) { return std::max(0.0, 0.5 * (1.0 + std::cos(angle))); }

Factor constant_with_warmup(std::int64_t w) {
  return [w](std::int64_t s) { return s < w ? warmup(s, w) : 1.0; };
}

Factor linear(std::int64_t w, std::int64_t n) {
  return [w, n](std::int64_t s) {
    return s < w ? warmup(s, w) : std::max(0.0, ratio(n - s, std::max<std::int64_t>(1, n - w)));
  };
}

Factor cosine(std::int64_t w, std::int64_t n) {
  return [w, n](std::int64_t s) {
    return s < w ? warmup(s, w) : half_cosine(kPi * ratio(s - w, std::max<std::int64_t>(1, n - w)));
  };
}

Factor cosine_with_restarts(std::int64_t w, std::int64_t n) {
  return [w, n](std::int64_t s) {
    if (s < w) return warmup(s, w);
    const double progress = ratio(s - w, std::max<std::int64_t>(1, n - w));
    return progress >= 1.0 ? 0.0 : half_cosine(kPi * std::fmod(progress, 1.0));
  };
}

Factor polynomial(std::int64_t w, std::int64_t n, double lr) {
  constexpr double kEnd = 1e-7;
  if (!(lr > kEnd))
    fail(ErrorKind::kConfig,
         "scheduler: name polynomial ends at 1e-07, so the optimizer's lr must be above it; got {}.", lr);
  return [w, n, lr](std::int64_t s) {
    if (s < w) return warmup(s, w);
    if (s > n) return kEnd / lr;
    if (n == w) return 1.0;  // the single step at the end of warm-up: no time to decay in
    const double remaining = 1.0 - ratio(s - w, n - w);
    return ((lr - kEnd) * remaining + kEnd) / lr;
  };
}

Factor vqbet(std::int64_t w, std::int64_t v, double cycles, std::int64_t n) {
  return [=](std::int64_t s) {
    if (s < v) return 1.0;
    const std::int64_t after = s - v;
    if (after < w) return warmup(after, w);
    return half_cosine(kPi * cycles * 2.0 * ratio(after - w, std::max<std::int64_t>(1, n - w)));
  };
}

// The cosine runs from step 0, not from the end of warm-up: the curve jumps down where warm-up ends.
Factor cosine_decay(std::int64_t w, std::int64_t m, double peak_lr, double decay_lr) {
  return [=](std::int64_t s) {
    if (s < w) {
      const double start = 1.0 / static_cast<double>(w + 1);
      return s <= 0 ? start : (start - 1.0) * (1.0 - ratio(s, w)) + 1.0;
    }
    const double curve = 0.5 * (1.0 + std::cos(kPi * static_cast<double>(std::min(s, m)) / static_cast<double>(m)));
    const double alpha = decay_lr / peak_lr;
    return (1.0 - alpha) * curve + alpha;
  };
}

Schedule fitted_cosine_decay(const ScheduleOptions& options, std::int64_t w, std::int64_t num_steps) {
  std::int64_t m = options.num_decay_steps;
  if (m <= 0 || !(options.peak_lr > 0.0))
    fail(ErrorKind::kConfig,
         "scheduler: cosine_decay_with_warmup got num_decay_steps={} and peak_lr={}; both must be "
         "above 0.",
         m, options.peak_lr);
  std::string note;
  if (num_steps < m) {
    const double scale = ratio(num_steps, m);
    const auto scaled = static_cast<std::int64_t>(static_cast<double>(w) * scale);
    note = fmt::format(
        "Auto-scaling LR scheduler: the run has {} steps, fewer than num_decay_steps={}; warm-up {} -> {}, "
        "decay {} -> {} (factor {:.3f})",
        num_steps, m, w, scaled, m, num_steps, scale);
    w = scaled;
    m = num_steps;
  }
  return {cosine_decay(w, m, options.peak_lr, options.decay_lr), std::move(note)};
}

constexpr std::string_view kTypes =
    "diffuser, vqbet, constant_with_warmup, cosine_annealing_with_warmup, cosine_decay_with_warmup";
constexpr std::string_view kDiffuserNames =
    "constant, constant_with_warmup, linear, cosine, cosine_with_restarts, polynomial";

}  // namespace

ScheduleKind schedule_kind(std::string_view type, std::string_view diffuser_name) {
  if (type == "vqbet") return ScheduleKind::kVqBet;
  if (type == "constant_with_warmup") return ScheduleKind::kConstantWithWarmup;
  if (type == "cosine_annealing_with_warmup") return ScheduleKind::kCosineAnnealingWithWarmup;
  if (type == "cosine_decay_with_warmup") return ScheduleKind::kCosineDecayWithWarmup;
  if (type != "diffuser") fail(ErrorKind::kConfig, "scheduler.type: got \"{}\"; expected one of {}.", type, kTypes);
  if (diffuser_name == "constant") return ScheduleKind::kDiffuserConstant;
  if (diffuser_name == "constant_with_warmup") return ScheduleKind::kDiffuserConstantWithWarmup;
  if (diffuser_name == "linear") return ScheduleKind::kDiffuserLinear;
  if (diffuser_name == "cosine") return ScheduleKind::kDiffuserCosine;
  if (diffuser_name == "cosine_with_restarts") return ScheduleKind::kDiffuserCosineWithRestarts;
  if (diffuser_name == "polynomial") return ScheduleKind::kDiffuserPolynomial;
  fail(ErrorKind::kConfig, "scheduler.name: got \"{}\"; supported names of type diffuser: {}.", diffuser_name,
       kDiffuserNames);
}

Schedule make_schedule(const ScheduleOptions& options, std::int64_t num_steps, double optimizer_lr) {
  if (options.kind == ScheduleKind::kDiffuserConstant) return {[](std::int64_t) { return 1.0; }, {}};
  if (!options.num_warmup_steps || *options.num_warmup_steps < 0)
    fail(ErrorKind::kConfig, "scheduler.num_warmup_steps: got {}; this schedule needs a number of steps, 0 or more.",
         options.num_warmup_steps ? std::to_string(*options.num_warmup_steps) : "null");
  const std::int64_t w = *options.num_warmup_steps;
  switch (options.kind) {
    case ScheduleKind::kDiffuserConstantWithWarmup:
    case ScheduleKind::kConstantWithWarmup:
      return {constant_with_warmup(w), {}};
    case ScheduleKind::kDiffuserLinear:
      return {linear(w, num_steps), {}};
    case ScheduleKind::kDiffuserCosine:
    case ScheduleKind::kCosineAnnealingWithWarmup:
      return {cosine(w, num_steps), {}};
    case ScheduleKind::kDiffuserCosineWithRestarts:
      return {cosine_with_restarts(w, num_steps), {}};
    case ScheduleKind::kDiffuserPolynomial:
      return {polynomial(w, num_steps, optimizer_lr), {}};
    case ScheduleKind::kVqBet:
      return {vqbet(w, options.num_vqvae_training_steps, options.num_cycles, num_steps), {}};
    case ScheduleKind::kCosineDecayWithWarmup:
      return fitted_cosine_decay(options, w, num_steps);
    case ScheduleKind::kDiffuserConstant:
      break;
  }
  fail(ErrorKind::kInternal, "make_schedule: unhandled kind {}.", static_cast<int>(options.kind));
}

LambdaSchedule::LambdaSchedule(Optimizer& optimizer, Schedule schedule)
    : optimizer_(optimizer), schedule_(std::move(schedule)) {
  const double factor = schedule_.factor(0);
  for (auto& group : optimizer_.groups()) {
    if (!group.options.initial_lr) group.options.initial_lr = group.options.lr;
    base_lrs_.push_back(*group.options.initial_lr);
    group.options.lr = base_lrs_.back() * factor;
    last_lrs_.push_back(group.options.lr);
  }
}

void LambdaSchedule::step() {
  const double factor = schedule_.factor(++num_steps_done_);
  auto& groups = optimizer_.groups();
  for (std::size_t i = 0; i < groups.size(); ++i) last_lrs_[i] = groups[i].options.lr = base_lrs_[i] * factor;
}

Json LambdaSchedule::state() const {
  return {{"base_lrs", base_lrs_},
          {"last_epoch", num_steps_done_},
          {"_step_count", num_steps_done_ + 1},
          {"_is_initial", false},
          {"_get_lr_called_within_step", false},
          {"_last_lr", last_lrs_},
          {"lr_lambdas", std::vector<Json>(base_lrs_.size())}};
}

void LambdaSchedule::load_state(const Json& saved, std::string_view where) {
  require_like(state(), saved, where);
  const auto steps = saved.at("last_epoch").get<std::int64_t>();
  if (steps < 0) fail(ErrorKind::kCheckpoint, "{}: last_epoch is {}, expected 0 or more.", where, steps);
  base_lrs_ = saved.at("base_lrs").get<std::vector<double>>();
  last_lrs_ = saved.at("_last_lr").get<std::vector<double>>();
  num_steps_done_ = steps;
}

}  // namespace lerobot::optim
