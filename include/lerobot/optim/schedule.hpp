#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/json.hpp"
#include "lerobot/optim/optimizer.hpp"

namespace lerobot::optim {

/// The curves of the learning rate. The first six are the `diffuser` family, by name.
enum class ScheduleKind {
  kDiffuserConstant,
  kDiffuserConstantWithWarmup,
  kDiffuserLinear,
  kDiffuserCosine,
  kDiffuserCosineWithRestarts,
  kDiffuserPolynomial,
  kVqBet,
  kConstantWithWarmup,
  kCosineAnnealingWithWarmup,
  kCosineDecayWithWarmup,
};

/// The kind of `--scheduler.type` and, for type `diffuser`, `--scheduler.name`.
/// Throws: Error{kConfig} that lists the types or the six supported names.
[[nodiscard]] ScheduleKind schedule_kind(std::string_view type, std::string_view diffuser_name);

/// A schedule as configured; fields that a kind does not have are ignored.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kDiffuserConstant;
  std::optional<std::int64_t> num_warmup_steps = std::nullopt;
  std::int64_t num_vqvae_training_steps = 0;  ///< kVqBet
  double num_cycles = 0.5;                    ///< kVqBet
  std::int64_t num_decay_steps = 0;           ///< kCosineDecayWithWarmup
  double peak_lr = 0.0;                       ///< kCosineDecayWithWarmup
  double decay_lr = 0.0;                      ///< kCosineDecayWithWarmup
};

/// Learning rate of a group = its initial rate x factor(number of schedule steps done).
struct Schedule {
  std::function<double(std::int64_t)> factor;
  std::string note;  ///< a line for the log when the schedule was fitted to a shorter run, else empty
};

/// Makes the pure function of a schedule for a run of `num_steps` loop steps.
///
/// `optimizer_lr` is the optimizer's own rate, not a group's (only the polynomial curve uses it).
///
/// Throws: Error{kConfig} when the kind needs a warm-up and `num_warmup_steps` is null, or when a number makes no
/// sense. Source: LeRobot (Python) `optim/schedulers.py`, diffusers `get_scheduler`; same operations in the same order.
[[nodiscard]] Schedule make_schedule(const ScheduleOptions& options, std::int64_t num_steps, double optimizer_lr);

/// Applies a schedule to the groups of an optimizer; advances once per loop step, whether or not there was an update.
class LambdaSchedule {
 public:
  /// Records every group's present rate as its `initial_lr` (unless it has one) and applies factor(0).
  LambdaSchedule(Optimizer& optimizer, Schedule schedule);

  /// Advances by one loop step and sets the rates.
  void step();

  /// Loop steps done.
  [[nodiscard]] std::int64_t num_steps_done() const { return num_steps_done_; }

  /// Content of scheduler_state.json: seven keys, one entry per group in the lists.
  [[nodiscard]] Json state() const;

  /// Takes over a saved state. The rates themselves come back with the optimizer's groups.
  /// Throws: Error{kCheckpoint} when keys, lengths or primitive kinds differ from `state()`; `where` names the file.
  void load_state(const Json& state, std::string_view where);

 private:
  Optimizer& optimizer_;
  Schedule schedule_;
  std::vector<double> base_lrs_;
  std::vector<double> last_lrs_;
  std::int64_t num_steps_done_ = 0;
};

}  // namespace lerobot::optim
