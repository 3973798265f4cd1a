#include "lerobot/log/logger.hpp"

#include <cstdio>
#include <ctime>
#include <string>

namespace lerobot::log {
namespace {

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

}  // namespace

void Logger::write(Level level, std::string_view line) {
  const bool info = level == Level::kInfo;
  const char* name = info ? "INFO" : level == Level::kWarning ? "WARNING" : "ERROR";
  const std::string rank = rank_ == 0 ? std::string() : fmt::format("[rank {}] ", rank_);
  const std::string text = fmt::format("{} {} {}{}\n", name, time_stamp(), rank, line);
  std::FILE* out = info ? stdout : stderr;
  std::fwrite(text.data(), 1, text.size(), out);  // one call, so that lines of threads and ranks do not mix
  std::fflush(out);
}

}  // namespace lerobot::log
