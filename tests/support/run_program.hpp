#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot::test {

/// What a finished program left behind. `code` is -1 when it had to be killed at the time limit.
struct Finished {
  int code = -1;
  std::string out, err;
  double seconds = 0;
};

/// A fresh folder that goes with the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lerobot-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Runs a program to its end, or kills its process group at the limit.
inline Finished run_program(const std::vector<std::string>& words, double limit_s = 90,
                            const std::vector<std::string>& environment = {}) {
  const TemporaryFolder folder;
  const auto out = folder / "out", err = folder / "err";
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    const int o = open(out.c_str(), O_CREAT | O_WRONLY, 0600), e = open(err.c_str(), O_CREAT | O_WRONLY, 0600);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(o, 1);
    dup2(e, 2);
    for (const auto& variable : environment) putenv(const_cast<char*>(variable.c_str()));
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  Finished finished;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (elapsed() > limit_s) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      finished.out = slurp(out);
      finished.err = slurp(err) + "\n(killed at the time limit)";
      finished.seconds = elapsed();
      return finished;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finished.out = slurp(out);
  finished.err = slurp(err);
  finished.seconds = elapsed();
  return finished;
}

/// mpirun with what it needs in containers, as root, and on fewer cores than ranks.
inline std::vector<std::string> mpirun(int ranks) {
  return {"mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", std::to_string(ranks)};
}

inline std::string train_program() { return std::string(LEROBOT_BIN) + "/lerobot-train"; }

/// The small state-only ACT of the golden runs on the dataset in the test data.
inline std::vector<std::string> small_act(const std::filesystem::path& output_dir) {
  return {"--dataset.repo_id=golden/pusht_mini_state",
          "--dataset.root=" + std::string(LEROBOT_TEST_DATA) + "/datasets/pusht_mini_state",
          "--policy.type=act",
          "--policy.device=cpu",
          "--policy.push_to_hub=false",
          "--policy.chunk_size=10",
          "--policy.n_action_steps=10",
          "--policy.dim_model=16",
          "--policy.n_heads=2",
          "--policy.dim_feedforward=32",
          "--policy.n_encoder_layers=2",
          "--policy.n_decoder_layers=1",
          "--policy.n_vae_encoder_layers=1",
          "--policy.latent_dim=4",
          "--policy.pretrained_backbone_weights=null",
          "--policy.optimizer_lr=1e-3",
          "--env_eval_freq=0",
          "--num_workers=0",
          "--batch_size=4",
          "--seed=1000",
          "--output_dir=" + output_dir.string()};
}

/// Runs lerobot-train with `arguments`; 0 ranks: without mpirun.
inline Finished train(int ranks, std::vector<std::string> arguments, double limit_s = 90,
                      const std::vector<std::string>& environment = {}) {
  std::vector<std::string> words = ranks == 0 ? std::vector<std::string>{} : mpirun(ranks);
  words.push_back(train_program());
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables{"OMP_NUM_THREADS=1"};
  variables.insert(variables.end(), environment.begin(), environment.end());
  return run_program(words, limit_s, variables);
}

inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The records of a metrics.jsonl that hold `key`.
inline std::vector<Json> metrics(const std::filesystem::path& output_dir, const std::string& key = "loss") {
  std::ifstream file(output_dir / "metrics.jsonl");
  std::vector<Json> records;
  for (std::string line; std::getline(file, line);) {
    Json record = Json::parse(line);
    if (record.contains(key)) records.push_back(std::move(record));
  }
  return records;
}

/// How often `what` stands in `text`.
inline int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

/// Every file below a folder with its bytes; symbolic links with their target.
inline std::vector<std::pair<std::string, std::string>> contents(const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto name = std::filesystem::relative(entry.path(), folder).string();
    if (entry.is_symlink())
      all.emplace_back(name, std::filesystem::read_symlink(entry.path()).string());
    else if (entry.is_regular_file())
      all.emplace_back(name, slurp(entry.path()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace lerobot::test
