#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lerobot/data/batch_source.hpp"
#include "lerobot/data/dataset.hpp"
#include "lerobot/nn/noise.hpp"
#include "lerobot/policies/policy.hpp"

namespace lerobot::train {

/// What one loop step did on this rank; an observer reads it, the loop never waits for it.
struct StepRecord {
  std::int64_t step = 0;    ///< 1 for the first step of a run
  bool is_update = false;   ///< gradients crossed ranks and the optimizer was asked to step
  bool is_skipped = false;  ///< the update was left out (overflow, or a non-finite gradient with skip)
  bool is_replay = false;   ///< a micro-batch of an unfinished window, run again after a resume
  double loss = 0;          ///< this rank's micro-batch, undivided, unscaled
  std::vector<std::pair<std::string, double>> outputs;
  std::optional<double> grad_norm;  ///< before clipping, equal on all ranks; only on updates with clipping on
  std::vector<double> lr;           ///< per group, as used by this step
  std::vector<std::int64_t> index;  ///< absolute frame numbers of the micro-batch
};

/// The public seams of the Trainer. Empty members mean: as in production.
struct Seams {
  /// Gives this rank's batches in place of the dataset's loader.
  std::function<std::unique_ptr<data::BatchSource>(data::Dataset& dataset)> batches;
  /// Gives the numbers that the policy would draw.
  nn::NoiseSource noise;
  /// Sees the policy on CPU once its weights are there, before it is moved, wrapped or sharded.
  std::function<void(policies::Policy& policy)> on_policy;
  /// Called after every loop step. Setting it reads the loss from the device in every step.
  std::function<void(const StepRecord& record)> on_step;
};

}  // namespace lerobot::train
