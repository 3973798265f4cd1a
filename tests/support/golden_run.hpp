#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot::test {

/// One micro-batch of a recorded run of LeRobot (Python).
struct TraceStep {
  double loss = 0;
  std::map<std::string, double> outputs;
  std::optional<double> grad_norm;
  bool sync = true;
  std::vector<double> lr;
  std::vector<at::Tensor> noise;
  std::vector<std::int64_t> index;
};

/// A recorded run of LeRobot (Python): its command line and, per rank, its trace.
struct GoldenRun {
  std::filesystem::path folder;
  std::vector<std::string> arguments;
  std::vector<std::vector<TraceStep>> ranks;
};

inline std::filesystem::path test_data() { return LEROBOT_TEST_DATA; }

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Words of command.txt without the program's name; paths point into the test data.
inline std::vector<std::string> read_command(const std::filesystem::path& path) {
  std::istringstream words(read_text(path));
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) {
    if (word == "lerobot-train" || word.find("lerobot_train") != std::string::npos)
      arguments.clear();  // the launcher's words
    if (word == "\\" || word.rfind("--", 0) != 0) continue;
    if (!word.empty() && word.back() == '\\') word.pop_back();
    for (const std::string place : {"datasets/", "checkpoints/"}) {
      const auto at = word.find("=" + place);
      if (at != std::string::npos) word.insert(at + 1, test_data().string() + "/");
    }
    arguments.push_back(word);
  }
  return arguments;
}

inline std::vector<TraceStep> read_trace(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<TraceStep> steps;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    TraceStep step;
    step.loss = json.at("loss").get<double>();
    for (const auto& [key, value] : json.at("outputs").items()) step.outputs[key] = value.get<double>();
    if (!json.at("grad_norm_before_clip").is_null()) step.grad_norm = json.at("grad_norm_before_clip").get<double>();
    step.sync = json.at("sync_gradients").get<bool>();
    step.lr = json.at("lr_used").get<std::vector<double>>();
    step.index = json.at("index").get<std::vector<std::int64_t>>();
    for (const Json& noise : json.at("vae_noise")) {
      const auto values = noise.at("values").get<std::vector<double>>();
      const auto shape = noise.at("shape").get<std::vector<std::int64_t>>();
      step.noise.push_back(torch::tensor(values, torch::kDouble).to(torch::kFloat).reshape(shape));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

inline GoldenRun golden_run(const std::string& name) {
  GoldenRun run;
  run.folder = test_data() / "checkpoints" / name;
  run.arguments = read_command(run.folder / "command.txt");
  for (int rank = 0;; ++rank) {
    const auto trace = run.folder / "trace" / ("trace_rank" + std::to_string(rank) + ".jsonl");
    if (!std::filesystem::exists(trace)) break;
    run.ranks.push_back(read_trace(trace));
  }
  return run;
}

}  // namespace lerobot::test
