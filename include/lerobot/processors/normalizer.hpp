#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lerobot/processors/feature.hpp"
#include "lerobot/processors/step.hpp"

namespace lerobot::processors {

struct NormalizerOptions {
  std::vector<PolicyFeature> features;  ///< only these are touched
  NormalizationMap norm_map;
  Stats stats;
  double eps = 1e-8;
  /// Observations to normalise; all of `features` where it is not set.
  std::optional<std::vector<std::string>> normalize_observation_keys = std::nullopt;
};

/// Brings the listed features to a common range, or back.
///
/// MEAN_STD: (x - mean) / (std + eps); MIN_MAX: 2 (x - min) / (max - min) - 1; QUANTILES and QUANTILE10: the same with
/// q01, q99 and q10, q90; a range of 0 counts as eps. Back: x * std + mean; (x + 1) / 2 * range + min. A feature with
/// no statistics, and one whose type is not in `norm_map`, stays as it is.
class Normalizer final : public Step {
 public:
  enum class Direction { kNormalize, kUnnormalize };

  /// Throws: Error{kConfig} when a feature has statistics but not the two that its mode needs (both named).
  Normalizer(Direction direction, NormalizerOptions options);
  Normalizer(Direction direction, const StepSource& source);

  [[nodiscard]] std::string_view registry_name() const override;
  [[nodiscard]] Json config() const override;
  /// Every statistic as "<feature>.<statistic>", float32.
  [[nodiscard]] TensorMap state() const override;
  void apply(Batch& batch) override;
  /// The same for one feature's tensor; unchanged when `feature` is not normalised.
  [[nodiscard]] at::Tensor apply(const std::string& feature, const at::Tensor& x);

 private:
  /// x -> (x - shift) / scale, or 2 (x - shift) / scale - 1, and back.
  struct Transform {
    bool to_unit_range = false;
    at::Tensor shift, scale, scale_back;
  };
  void prepare();
  [[nodiscard]] at::Tensor transform(Transform& transform, const at::Tensor& x) const;

  Direction direction_;
  NormalizerOptions options_;
  std::map<std::string, Transform> transforms_;
};

}  // namespace lerobot::processors
