#include "lerobot/data/stats.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "lerobot/core/error.hpp"
#include "lerobot/core/json.hpp"
#include "lerobot/formats/json.hpp"

namespace lerobot::data {
namespace {

constexpr std::size_t kMaxDepth = 6;

/// Appends the numbers of nested arrays in row-major order and checks that the arrays are regular.
void flatten(const Json& value, std::size_t depth, std::vector<std::int64_t>& sizes, std::vector<double>& out,
             const std::string& where) {
  if (value.is_array()) {
    if (depth >= kMaxDepth) fail(ErrorKind::kDataset, "{}: arrays are nested more than {} deep.", where, kMaxDepth);
    const auto size = static_cast<std::int64_t>(value.size());
    if (depth == sizes.size()) {
      if (!out.empty()) fail(ErrorKind::kDataset, "{}: the nested arrays are not regular.", where);
      sizes.push_back(size);
    }
    if (sizes[depth] != size)
      fail(ErrorKind::kDataset, "{}: a nested array has {} items where others have {}.", where, size, sizes[depth]);
    for (const Json& item : value) flatten(item, depth + 1, sizes, out, where);
    return;
  }
  if (depth != sizes.size() || !(value.is_number() || value.is_boolean()))
    fail(ErrorKind::kDataset, "{}: found {}; expected a number or regular nested arrays of numbers.", where,
         value.dump());
  out.push_back(value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>());
}

at::Tensor to_tensor(const Json& value, bool integer, const std::string& where) {
  std::vector<std::int64_t> sizes;
  std::vector<double> numbers;
  flatten(value, 0, sizes, numbers, where);
  if (sizes.empty()) sizes.push_back(1);
  const at::Tensor tensor = at::from_blob(numbers.data(), sizes, at::kDouble);
  return integer ? tensor.to(at::kLong) : tensor.clone();
}

bool is_quantile(const std::string& name) {
  return name.size() > 1 && name[0] == 'q' &&
         std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c); });
}

void check_part(const Stats& part) {
  for (const auto& [feature, stats] : part)
    for (const auto& [name, value] : stats) {
      if (value.dim() == 0)
        fail(ErrorKind::kDataset, "stats of \"{}\": \"{}\" is a scalar; expected at least one dimension.", feature,
             name);
      if (name == "count" && value.sizes() != at::IntArrayRef{1})
        fail(ErrorKind::kDataset, "stats of \"{}\": count has {} dimensions; expected one integer.", feature,
             value.dim());
      if (name != "count" && feature.find("image") != std::string::npos &&
          value.sizes() != at::IntArrayRef({3, 1, 1}) && value.sizes() != at::IntArrayRef({1, 1, 1}))
        fail(ErrorKind::kDataset, "stats of \"{}\": \"{}\" is not of shape (3,1,1) or (1,1,1).", feature, name);
    }
}

const at::Tensor& need(const FeatureStats& stats, const std::string& feature, const char* name) {
  const auto it = stats.find(name);
  if (it == stats.end())
    fail(ErrorKind::kDataset, "stats of \"{}\": \"{}\" is missing; it is needed to pool parts.", feature, name);
  return it->second;
}

FeatureStats aggregate_feature(const std::string& feature, const std::vector<const FeatureStats*>& parts) {
  at::Tensor total, weighted, lowest, highest;
  for (const FeatureStats* part : parts) {
    const at::Tensor& count = need(*part, feature, "count");
    const at::Tensor mean = need(*part, feature, "mean").to(at::kDouble) * count.item<std::int64_t>();
    const at::Tensor min = need(*part, feature, "min").to(at::kDouble),
                     max = need(*part, feature, "max").to(at::kDouble);
    if (total.defined() &&
        (mean.sizes() != weighted.sizes() || min.sizes() != lowest.sizes() || max.sizes() != highest.sizes()))
      fail(ErrorKind::kDataset, "stats of \"{}\": the parts differ in shape.", feature);
    total = total.defined() ? total + count : count.clone();
    weighted = weighted.defined() ? weighted + mean : mean;
    lowest = lowest.defined() ? at::minimum(lowest, min) : min;
    highest = highest.defined() ? at::maximum(highest, max) : max;
  }
  const auto n = static_cast<double>(total.item<std::int64_t>());
  const at::Tensor mean = weighted / n;
  at::Tensor squares = at::zeros_like(mean);
  for (const FeatureStats* part : parts) {
    const at::Tensor variance = need(*part, feature, "std").to(at::kDouble).square();
    const at::Tensor shift = (part->at("mean").to(at::kDouble) - mean).square();
    squares += (variance + shift) * part->at("count").item<std::int64_t>();
  }
  FeatureStats pooled{
      {"count", total}, {"mean", mean}, {"std", (squares / n).sqrt()}, {"min", lowest}, {"max", highest}};
  for (const auto& [name, first] : *parts.front()) {
    if (!is_quantile(name)) continue;
    if (!std::all_of(parts.begin(), parts.end(), [&](const FeatureStats* p) { return p->contains(name); })) continue;
    const bool lower = std::stoi(name.substr(1, 4)) <= 50;
    at::Tensor value = first.to(at::kDouble);
    for (const FeatureStats* part : parts) {
      const at::Tensor other = part->at(name).to(at::kDouble);
      value = lower ? at::minimum(value, other) : at::maximum(value, other);
    }
    pooled[name] = value;
  }
  return pooled;
}

}  // namespace

Stats read_stats(const std::filesystem::path& root) {
  const std::filesystem::path path = root / "meta" / "stats.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const Json json = formats::read_json(path, ErrorKind::kDataset);
  if (!json.is_object()) fail(ErrorKind::kDataset, "{}: expected a JSON object.", path.string());
  Stats stats;
  for (const auto& [feature, entries] : json.items()) {
    if (!entries.is_object()) fail(ErrorKind::kDataset, "{}: \"{}\" is not an object.", path.string(), feature);
    for (const auto& [name, value] : entries.items())
      stats[feature][name] =
          to_tensor(value, name == "count", fmt::format("{}: \"{}\"/\"{}\"", path.string(), feature, name));
  }
  return stats;
}

Stats aggregate_stats(std::span<const Stats> parts) {
  std::map<std::string, std::vector<const FeatureStats*>> by_feature;
  for (const Stats& part : parts) {
    check_part(part);
    for (const auto& [feature, stats] : part) by_feature[feature].push_back(&stats);
  }
  Stats pooled;
  for (const auto& [feature, stats] : by_feature) pooled[feature] = aggregate_feature(feature, stats);
  return pooled;
}

void use_imagenet_stats(Stats& stats, const DatasetInfo& info) {
  for (const Feature& feature : info.features) {
    if (!feature.is_camera() || feature.is_depth) continue;
    FeatureStats& entry = stats[feature.name];
    entry["mean"] = at::tensor({0.485F, 0.456F, 0.406F}).view({3, 1, 1});
    entry["std"] = at::tensor({0.229F, 0.224F, 0.225F}).view({3, 1, 1});
  }
}

}  // namespace lerobot::data
