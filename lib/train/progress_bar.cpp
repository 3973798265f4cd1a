#include "lerobot/train/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace lerobot::train {
namespace {

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::max(0.0, seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{:02}:{:02}", s / 60, s % 60);
}

}  // namespace

ProgressBar::ProgressBar(bool enabled, std::int64_t first_step, std::int64_t total_steps)
    : enabled_(enabled && isatty(STDERR_FILENO) == 1),
      first_(first_step),
      total_(total_steps),
      start_(std::chrono::steady_clock::now()),
      last_(start_ - std::chrono::seconds(1)) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputc('\n', stderr);
}

std::string ProgressBar::text(std::int64_t step, std::int64_t first_step, std::int64_t total, double elapsed_s) {
  constexpr int kWidth = 30;
  const double share = total > 0 ? std::min(1.0, static_cast<double>(step) / static_cast<double>(total)) : 1.0;
  const int filled = static_cast<int>(share * kWidth);
  const double rate = elapsed_s > 0 ? static_cast<double>(step - first_step) / elapsed_s : 0.0;
  const std::string left = rate > 0 ? clock_text(static_cast<double>(total - step) / rate) : "?";
  return fmt::format("Training {:3.0f}% |{}{}| {}/{} [{}<{}, {:.1f} step/s]", share * 100,
                     std::string(static_cast<std::size_t>(filled), '#'),
                     std::string(static_cast<std::size_t>(kWidth - filled), ' '), step, total, clock_text(elapsed_s),
                     left, rate);
}

void ProgressBar::update(std::int64_t step) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100) && step != total_) return;
  last_ = now;
  drawn_ = true;
  std::fprintf(stderr, "\r\033[K%s",
               text(step, first_, total_, std::chrono::duration<double>(now - start_).count()).c_str());
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace lerobot::train
