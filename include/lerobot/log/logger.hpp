#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace lerobot::log {

enum class Level { kInfo, kWarning, kError };

/// Where a run says what happens. Rooms are handed one; there is no global logger.
///
/// Rank 0 speaks: on other ranks info and warnings are dropped, errors pass with the rank in front. Info goes to
/// stdout, warnings and errors to stderr; every line is flushed at once, so that lines of a dying job are not lost.
/// Thread-safe. Not collective.
class Logger {
 public:
  explicit Logger(int rank = 0) : rank_(rank) {}
  virtual ~Logger() = default;

  template <typename... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) {
    if (rank_ == 0) write(Level::kInfo, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> text, Args&&... args) {
    if (rank_ == 0) write(Level::kWarning, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) {
    write(Level::kError, fmt::format(text, std::forward<Args>(args)...));
  }
  [[nodiscard]] int rank() const { return rank_; }

  /// Writes one finished line. Tests override it to collect lines.
  virtual void write(Level level, std::string_view line);

 private:
  int rank_;
};

}  // namespace lerobot::log
