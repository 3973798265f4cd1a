#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "lerobot/config/config.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/policies/act_type.hpp"

namespace lerobot::config::test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

inline policies::Registry registry() {
  policies::Registry types;
  types.add(policies::act_type());
  return types;
}

/// A world of `ranks` with every feature built, no variables set, and the clock at 2026-01-31 12:00 UTC.
inline Environment world(std::int64_t ranks = 1) {
  Environment environment;
  environment.now = 1769860800;
  environment.world_size = ranks;
  environment.built = BuiltFeatures::all();
  return environment;
}

/// What completes a command: a dataset, a policy on the CPU, nothing to publish.
inline Words complete(const Words& words) {
  Words all{"--dataset.repo_id=user/ds", "--policy.type=act", "--policy.device=cpu", "--policy.push_to_hub=false"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

inline ParsedTrain parse_bare(const Words& words, const Environment& environment = world()) {
  return parse_train(words, registry(), environment);
}
inline ParsedTrain parse(const Words& words, const Environment& environment = world()) {
  return parse_bare(complete(words), environment);
}

struct Refusal {
  int exit = 0;
  std::string message;
};

inline Refusal refusal_bare(const Words& words, const Environment& environment = world()) {
  try {
    static_cast<void>(parse_bare(words, environment));
  } catch (const Error& error) {
    return {exit_code(error.kind()), error.what()};
  }
  return {0, "(accepted)"};
}
inline Refusal refusal(const Words& words, const Environment& environment = world()) {
  return refusal_bare(complete(words), environment);
}

/// Checks the exit code and that the message has every fragment.
inline void check_refused(const Refusal& refused, int exit, const Words& fragments) {
  CAPTURE(refused.message);
  CHECK(refused.exit == exit);
  for (const std::string& fragment : fragments) CHECK_THAT(refused.message, Catch::Contains(fragment));
}

/// A folder of its own for one test, removed at its end.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("lerobot_config_" + std::to_string(std::random_device{}()))) {
    fs::create_directories(path_);
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

inline std::string slurp(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

inline const fs::path kData = LEROBOT_TEST_DATA;

}  // namespace lerobot::config::test
