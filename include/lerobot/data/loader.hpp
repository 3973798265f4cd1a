#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lerobot/data/batch_plan.hpp"
#include "lerobot/data/batch_source.hpp"
#include "lerobot/data/dataset.hpp"
#include "lerobot/data/sampler.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::data {

/// How batches reach one rank.
struct LoaderOptions {
  std::int64_t batch_size = 8;
  int dp_rank = 0, dp_world = 1;
  int num_workers = 4;      ///< loader threads of this rank; 0: batches are made inside next()
  int prefetch_factor = 4;  ///< batches made ahead per loader thread asked for
  bool pin_memory = false;  ///< batches in page-locked memory, for asynchronous copies to a CUDA device
  std::uint64_t seed = 0;   ///< of the image transforms; the order has the sampler's
};

/// This rank's batches, epoch after epoch, made ahead of need by threads.
///
/// What comes out depends on sampler, options and start alone, not on the number of threads. Transforms draw from
/// (seed, rank, epoch, place in the epoch), so that ranks differ and runs repeat.
class Loader final : public BatchSource {
 public:
  /// Threads start at once. A binding to too few cores is warned about.
  /// Throws: Error{kConfig} for sizes that are not positive, a rank outside the world, or pin_memory without CUDA.
  Loader(std::shared_ptr<const Dataset> dataset, EpisodeAwareSampler sampler, const LoaderOptions& options,
         log::Logger& logger, const Progress& start = {});
  ~Loader() override;

  Batch next() override;
  [[nodiscard]] double last_wait_s() const override;

  [[nodiscard]] const BatchPlan& plan() const;
  /// Where the run stands after the batches handed out so far: what a checkpoint stores.
  [[nodiscard]] Progress progress() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One batch of a held-out evaluation.
struct EvalBatch {
  Batch batch;
  /// False for a stand-in that keeps the ranks in step when there are fewer batches than ranks in the last round:
  /// run it (a sharded policy communicates), do not count it.
  bool counts = true;
};

/// A pass over held-out frames: each once, in order, batch b on rank b mod dp_world; the last batch may be short.
///
/// All ranks see equally many batches. After the end the next pass begins.
class EvalLoader {
 public:
  /// `positions` are positions of `dataset`; `options.seed` is not used.
  EvalLoader(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> positions, const LoaderOptions& options);
  ~EvalLoader();

  /// Batches of one pass on every rank.
  [[nodiscard]] std::int64_t num_rounds() const;
  /// The next batch of this pass; nothing at its end.
  std::optional<EvalBatch> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lerobot::data
