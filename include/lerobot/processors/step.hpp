#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/json.hpp"
#include "lerobot/processors/batch.hpp"
#include "lerobot/processors/tensor_file.hpp"

namespace lerobot::processors {

/// Statistics of a dataset: feature -> "mean", "std", "min", "max", "q01", … -> values.
using Stats = std::map<std::string, std::map<std::string, at::Tensor>>;

/// One step of a pipeline. Steps keep no state between batches that changes a result.
class Step {
 public:
  virtual ~Step() = default;
  /// The name under which files know the step: "normalizer_processor".
  [[nodiscard]] virtual std::string_view registry_name() const = 0;
  /// The `config` object that is stored, keys in the order of LeRobot (Python).
  [[nodiscard]] virtual Json config() const = 0;
  /// Tensors that are stored beside it; empty: no file.
  [[nodiscard]] virtual TensorMap state() const { return {}; }
  virtual void apply(Batch& batch) = 0;
};

/// What a stored step is built from.
struct StepSource {
  Json config = Json::object();
  Stats stats;  ///< of the state file or of an override
};
using StepFactory = std::function<std::unique_ptr<Step>(const StepSource& source)>;

/// The steps that a program can read, by registry name. Not global: a downstream project adds its own and passes it on.
using StepRegistry = std::map<std::string, StepFactory, std::less<>>;

/// rename_observations_processor, to_batch_processor, device_processor, normalizer_processor, unnormalizer_processor.
[[nodiscard]] StepRegistry built_in_steps();

/// Renames observations; what is called `<name>_is_pad` or `<name>_padding_mask` follows its observation.
class RenameObservations final : public Step {
 public:
  explicit RenameObservations(std::vector<std::pair<std::string, std::string>> rename_map);
  explicit RenameObservations(const StepSource& source);
  [[nodiscard]] std::string_view registry_name() const override { return "rename_observations_processor"; }
  [[nodiscard]] Json config() const override;
  void apply(Batch& batch) override;

 private:
  std::vector<std::pair<std::string, std::string>> rename_map_;
};

/// Gives single samples a batch dimension: an action or state with 1 dim, an image with 3, an index with none.
class ToBatch final : public Step {
 public:
  ToBatch() = default;
  explicit ToBatch(const StepSource& source);
  [[nodiscard]] std::string_view registry_name() const override { return "to_batch_processor"; }
  [[nodiscard]] Json config() const override { return Json::object(); }
  void apply(Batch& batch) override;
};

/// Moves every tensor to a device; a tensor on some GPU stays on it when the target is "cuda". May cast floats.
class ToDevice final : public Step {
 public:
  /// `device`: as torch names it, "cpu", "cuda", "cuda:1". `float_dtype`: float16, half, bfloat16, float32, float,
  /// float64, double, or empty for none. Throws: Error{kConfig} on another name.
  explicit ToDevice(std::string device, std::string float_dtype = {});
  explicit ToDevice(const StepSource& source);
  [[nodiscard]] std::string_view registry_name() const override { return "device_processor"; }
  [[nodiscard]] Json config() const override;
  void apply(Batch& batch) override;

 private:
  std::string device_name_, float_dtype_name_;
  at::Device device_{at::kCPU};
  std::optional<at::ScalarType> float_dtype_;
};

}  // namespace lerobot::processors
