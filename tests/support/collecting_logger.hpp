#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lerobot/log/logger.hpp"

namespace lerobot::test {

/// Keeps what would have been written.
class CollectingLogger final : public log::Logger {
 public:
  explicit CollectingLogger(int rank = 0) : Logger(rank) {}
  void write(log::Level level, std::string_view line) override {
    (level == log::Level::kInfo ? infos : level == log::Level::kWarning ? warnings : errors).emplace_back(line);
  }
  std::vector<std::string> infos, warnings, errors;
};

}  // namespace lerobot::test
