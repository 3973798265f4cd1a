#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "lerobot/data/info.hpp"

namespace lerobot::data {

/// Statistic name ("mean", "std", "min", "max", "count", "q01", …) to value. "count" is int64 [1], the others float64.
using FeatureStats = std::map<std::string, at::Tensor>;
/// Feature name to its statistics.
using Stats = std::map<std::string, FeatureStats>;

/// Reads <root>/meta/stats.json; no file gives no statistics.
[[nodiscard]] Stats read_stats(const std::filesystem::path& root);

/// Pools statistics of disjoint parts: weighted mean and standard deviation, envelopes of min, max and quantiles.
///
/// A quantile is kept only where every part has it; lower ones (q <= 50) pool to the smallest, upper ones to the
/// largest value. The result has the union of the features.
/// Throws: Error{kDataset} for a 0-dim value, a `count` that is not [1], an image statistic that is not (3,1,1) or
/// (1,1,1).
[[nodiscard]] Stats aggregate_stats(std::span<const Stats> parts);

/// Puts ImageNet's mean and std (float32, (3,1,1)) in place of every colour camera's; other statistics stay.
void use_imagenet_stats(Stats& stats, const DatasetInfo& info);

}  // namespace lerobot::data
