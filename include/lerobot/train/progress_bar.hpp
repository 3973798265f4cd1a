#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lerobot::train {

/// A live bar on a terminal: steps done, rate, time left. Draws nothing where stderr is no terminal, so that files and
/// pipes get plain lines only. Main rank only.
class ProgressBar {
 public:
  ProgressBar(bool enabled, std::int64_t first_step, std::int64_t total_steps);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Redraws at most ten times a second.
  void update(std::int64_t step);
  /// Takes the bar away so that a line can be printed; the next update brings it back.
  void clear();

  /// The bar's text, without terminal codes: "Training  12% |###       | 120/1000 [00:10<01:20, 11.5 step/s]".
  [[nodiscard]] static std::string text(std::int64_t step, std::int64_t first_step, std::int64_t total,
                                        double elapsed_s);

 private:
  bool enabled_;
  bool drawn_ = false;
  std::int64_t first_, total_;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace lerobot::train
