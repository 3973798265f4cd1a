#include "lerobot/train/metrics.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "lerobot/core/error.hpp"

namespace lerobot::train {
namespace {

std::string c_format(const std::string& format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), ("%" + format).c_str(), value);
  return text.data();
}

/// JSON has no NaN: a figure that is none becomes null.
Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::string format_big_number(double number) {
  constexpr std::array<const char*, 6> kSuffixes{"", "K", "M", "B", "T", "Q"};
  std::size_t i = 0;
  while (std::abs(number) >= 1000.0 && i + 1 < kSuffixes.size()) {
    number /= 1000.0;
    ++i;
  }
  return c_format(".0f", number) + kSuffixes[i];
}

Reduction parse_reduction(std::string_view name) {
  if (name == "none") return Reduction::kNone;
  if (name == "mean") return Reduction::kMean;
  if (name == "max") return Reduction::kMax;
  fail(ErrorKind::kInternal, "metrics: unknown reduction \"{}\"; expected none, mean or max.", name);
}

Meter::Meter(std::string key, std::string printed_name, std::string format, Reduction reduction)
    : key_(std::move(key)), printed_name_(std::move(printed_name)), format_(std::move(format)), reduction_(reduction) {}

void Meter::update(double value, std::int64_t n) {
  settle();
  value_ = value;
  sum_ += value * static_cast<double>(n);
  count_ += n;
}

void Meter::update(const at::Tensor& scalar) { pending_.push_back(scalar.detach()); }

void Meter::reset() {
  pending_.clear();
  value_ = sum_ = 0;
  count_ = 0;
}

void Meter::set_average(double average) {
  settle();
  sum_ = average * static_cast<double>(count_);
}

void Meter::settle() const {
  if (pending_.empty()) return;
  torch::NoGradGuard no_grad;
  std::vector<at::Tensor> flat;
  flat.reserve(pending_.size());
  for (const auto& scalar : pending_) flat.push_back(scalar.reshape({1}));
  const at::Tensor host = torch::cat(flat).to(torch::kCPU, torch::kDouble);
  const auto* values = host.const_data_ptr<double>();
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    value_ = values[i];
    sum_ += value_;
    ++count_;
  }
  pending_.clear();
}

double Meter::value() const { return settle(), value_; }
double Meter::sum() const { return settle(), sum_; }
std::int64_t Meter::count() const { return settle(), count_; }
double Meter::average() const { return settle(), count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }
std::string Meter::text() const { return printed_name_ + ":" + c_format(format_, average()); }

MetricsTracker::MetricsTracker(Counts counts, std::int64_t start_step, std::int64_t start_samples, bool with_scale,
                               bool with_cuda)
    : counts_(counts), steps_(start_step), samples_(start_samples) {
  using enum Reduction;
  meters_ = {{"loss", "loss", ".3f", kMean},
             {"grad_norm", "grdn", ".3f", kNone},
             {"lr", "lr", "0.1e", kNone},
             {"dataloading_s", "data_s", ".3f", kMax},
             {"preprocessing_s", "prep_s", ".3f", kMax},
             {"update_s", "updt_s", ".3f", kMax},
             {"step_s", "step_s", ".3f", kMax},
             {"samples_per_s", "smp/s", ".0f", kNone}};
  if (with_cuda) meters_.emplace_back("gpu_mem_gb", "mem_gb", ".2f", kMax);
  if (with_scale) meters_.emplace_back("grad_scale", "scale", ".0f", kNone);
  num_standard_ = meters_.size();
}

void MetricsTracker::step() {
  ++steps_;
  samples_ += counts_.batch_size * counts_.dp_world;
}

Meter& MetricsTracker::at(std::string_view key) {
  for (auto& meter : meters_)
    if (meter.key() == key) return meter;
  fail(ErrorKind::kInternal, "metrics: unknown metric \"{}\".", key);
}

void MetricsTracker::update_outputs(const std::vector<std::pair<std::string, at::Tensor>>& outputs) {
  for (const auto& [key, value] : outputs) {
    const auto known = std::find_if(meters_.begin(), meters_.end(), [&](const Meter& m) { return m.key() == key; });
    if (known == meters_.end()) {
      meters_.emplace_back(key, key, ".3f", Reduction::kMean).update(value);
    } else if (static_cast<std::size_t>(known - meters_.begin()) >= num_standard_) {
      known->update(value);
    }
  }
}

void MetricsTracker::reduce(c10d::ProcessGroup& group) {
  if (group.getSize() <= 1) return;
  for (const Reduction reduction : {Reduction::kMean, Reduction::kMax}) {
    std::vector<Meter*> chosen;
    for (auto& meter : meters_)
      if (meter.reduction() == reduction) chosen.push_back(&meter);
    if (chosen.empty()) continue;
    at::Tensor values = torch::empty({static_cast<std::int64_t>(chosen.size())}, torch::kDouble);
    for (std::size_t i = 0; i < chosen.size(); ++i) values[static_cast<std::int64_t>(i)] = chosen[i]->average();
    std::vector<at::Tensor> tensors{values};
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::kMax ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
    group.allreduce(tensors, options)->wait();
    if (reduction == Reduction::kMean) values /= group.getSize();
    for (std::size_t i = 0; i < chosen.size(); ++i)
      chosen[i]->set_average(values[static_cast<std::int64_t>(i)].item<double>());
  }
}

void MetricsTracker::update_throughput() {
  const double step_s = at("step_s").average();
  Meter& meter = at("samples_per_s");
  meter.reset();
  if (step_s > 0) meter.update(static_cast<double>(counts_.batch_size * counts_.dp_world) / step_s);
}

void MetricsTracker::reset() {
  for (auto& meter : meters_) meter.reset();
}

double MetricsTracker::episodes() const {
  return static_cast<double>(samples_) /
         (static_cast<double>(counts_.num_frames) / static_cast<double>(counts_.num_episodes));
}

double MetricsTracker::epochs() const {
  return static_cast<double>(samples_) / static_cast<double>(counts_.num_frames);
}

std::string MetricsTracker::line() const {
  std::string text =
      fmt::format("step:{} smpl:{} ep:{} epch:{:.2f}", format_big_number(static_cast<double>(steps_)),
                  format_big_number(static_cast<double>(samples_)), format_big_number(episodes()), epochs());
  for (const auto& meter : meters_) text += " " + meter.text();
  return text;
}

Json MetricsTracker::to_json() const {
  Json json;
  json["step"] = steps_;
  json["samples"] = samples_;
  json["episodes"] = finite_or_null(episodes());
  json["epochs"] = finite_or_null(epochs());
  for (const auto& meter : meters_) json[meter.key()] = finite_or_null(meter.average());
  return json;
}

MetricsFile::MetricsFile(const std::filesystem::path& path) : path_(path), out_(path, std::ios::app) {
  if (!out_) fail(ErrorKind::kConfig, "metrics: cannot open {} for writing. Check output_dir.", path.string());
}

void MetricsFile::write(const Json& record) {
  out_ << record.dump() << '\n' << std::flush;
  if (!out_) fail(ErrorKind::kConfig, "metrics: cannot write to {}; is the disk full?", path_.string());
}

}  // namespace lerobot::train
