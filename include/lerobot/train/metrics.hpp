#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lerobot/comm/process_group.hpp"
#include "lerobot/core/json.hpp"

namespace lerobot::train {

/// 1500 -> "2K", 51200000 -> "51M": divides by 1000 while |x| >= 1000; suffixes "", K, M, B, T, Q; ties to even.
/// Source: LeRobot (Python) `format_big_number`.
[[nodiscard]] std::string format_big_number(double number);

/// How a meter's window average becomes one figure for the job.
enum class Reduction { kNone, kMean, kMax };

/// Throws Error{kInternal} for a name other than none, mean, max.
[[nodiscard]] Reduction parse_reduction(std::string_view name);

/// Value, sum, count and average over the window since the last log line.
///
/// A tensor is kept, not read, until somebody asks: on an accelerator the training step then never waits for a figure.
class Meter {
 public:
  /// `format` is a C format without the percent sign: ".3f", "0.1e", ".0f".
  Meter(std::string key, std::string printed_name, std::string format, Reduction reduction);

  void update(double value, std::int64_t n = 1);
  void update(const at::Tensor& scalar);
  void reset();
  /// Replaces the average by a reduced one; the sum becomes average x count.
  void set_average(double average);

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] Reduction reduction() const { return reduction_; }
  [[nodiscard]] double value() const;
  [[nodiscard]] double sum() const;
  [[nodiscard]] std::int64_t count() const;
  [[nodiscard]] double average() const;    ///< 0 when never updated
  [[nodiscard]] std::string text() const;  ///< "loss:0.123"

 private:
  void settle() const;

  std::string key_, printed_name_, format_;
  Reduction reduction_;
  mutable double value_ = 0, sum_ = 0;
  mutable std::int64_t count_ = 0;
  mutable std::vector<at::Tensor> pending_;
};

/// Samples, episodes and epochs seen, and every meter of a run.
///
/// Source: LeRobot (Python) `MetricsTracker`. Differs: the sample count goes on from the checkpoint's figure when a
/// resume changes the number of ranks or the batch size.
class MetricsTracker {
 public:
  struct Counts {
    std::int64_t batch_size = 1, dp_world = 1, num_frames = 1, num_episodes = 1;
  };
  /// Makes the standard meters, in the order of the log line. `with_scale` adds grad_scale, `with_cuda` gpu_mem_gb.
  MetricsTracker(Counts counts, std::int64_t start_step, std::int64_t start_samples, bool with_scale, bool with_cuda);

  /// One loop step done.
  void step();
  /// Throws Error{kInternal} for an unknown key.
  [[nodiscard]] Meter& at(std::string_view key);
  /// Adds or updates the meters of a policy's own outputs; a key that the tracker has already is left alone.
  void update_outputs(const std::vector<std::pair<std::string, at::Tensor>>& outputs);
  /// Window averages over all ranks. Collective: over `group`; nothing happens in a group of one.
  void reduce(c10d::ProcessGroup& group);
  /// samples_per_s from the reduced step_s; call after `reduce`.
  void update_throughput();
  void reset();

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] double episodes() const;
  [[nodiscard]] double epochs() const;
  /// "step:2 smpl:8 ep:0 epch:0.13 loss:…"
  [[nodiscard]] std::string line() const;
  /// steps, samples, episodes, epochs and every meter's average under its key.
  [[nodiscard]] Json to_json() const;

 private:
  Counts counts_;
  std::int64_t steps_, samples_;
  std::vector<Meter> meters_;
  std::size_t num_standard_;
};

/// `<output_dir>/metrics.jsonl`: one JSON object per line, flushed at once, appended to on resume. Main rank only.
class MetricsFile {
 public:
  /// Throws Error{kConfig} when the file can't be opened.
  explicit MetricsFile(const std::filesystem::path& path);
  void write(const Json& record);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace lerobot::train
