#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lerobot/nn/noise.hpp"
#include "lerobot/processors/batch.hpp"

namespace lerobot::policies {

using processors::Batch;

/// What a training forward gives back.
struct PolicyOutput {
  at::Tensor loss;  ///< scalar, differentiable
  /// Number of elements that `loss` is the mean of: losses of several batches combine as sum(loss * weight) /
  /// sum(weight). Scalar float tensor.
  at::Tensor weight;
  /// Named scalars for the log, in the order of LeRobot (Python): "l1_loss", "kld_loss". Detached scalar tensors, so
  /// that nothing waits for the device inside the step.
  std::vector<std::pair<std::string, at::Tensor>> outputs;

  template <typename F>
  void visit_tensors(F&& f) {
    if (loss.defined()) f(loss);
  }
};

/// Parameters that share optimizer settings.
struct ParamGroup {
  std::vector<std::string> names;  ///< FQNs, in registration order
  std::optional<double> lr;        ///< overrides the optimizer's own
};

/// A policy: an ordinary single-process module that knows nothing of ranks or shards.
///
/// A class derives from it, defines `forward` and is declared with LEROBOT_MODULE; the hooked holder then overrides
/// `forward`, so that a call through this interface passes the hooks as well.
class Policy : public torch::nn::Module {
 public:
  /// Loss of one normalised batch. In eval mode: without the parts that need sampling.
  virtual PolicyOutput forward(const Batch& batch) = 0;
  /// Actions [B, chunk, A], normalised, for a batch of normalised observations. No gradient.
  virtual at::Tensor predict_action_chunk(const Batch& batch) = 0;
  /// The next action [B, A]; keeps a queue between calls.
  virtual at::Tensor select_action(const Batch& batch) = 0;
  /// Forgets the queue: call it when an episode begins.
  virtual void reset() = 0;
  /// Groups for the policy's own training preset; the trainable parameters only, empty groups included.
  [[nodiscard]] virtual std::vector<ParamGroup> optim_groups() const = 0;
  /// Called after every applied optimizer update.
  virtual void update() {}
  /// Where random numbers of the forward come from. Default: at::randn from the default generator.
  virtual void set_noise_source(nn::NoiseSource source) = 0;
};

}  // namespace lerobot::policies
