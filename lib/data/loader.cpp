#include "lerobot/data/loader.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "data/prefetcher.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/data/cores.hpp"

namespace lerobot::data {
namespace {

void check(const LoaderOptions& options) {
  if (options.batch_size < 1) fail(ErrorKind::kConfig, "batch_size: got {}; expected 1 or more.", options.batch_size);
  if (options.dp_world < 1 || options.dp_rank < 0 || options.dp_rank >= options.dp_world)
    fail(ErrorKind::kConfig, "loader: rank {} is outside a world of {}.", options.dp_rank, options.dp_world);
  if (options.num_workers < 0)
    fail(ErrorKind::kConfig, "num_workers: got {}; expected 0 or more.", options.num_workers);
  if (options.prefetch_factor < 1)
    fail(ErrorKind::kConfig, "prefetch_factor: got {}; expected 1 or more.", options.prefetch_factor);
  if (options.pin_memory && !at::hasCUDA())
    fail(ErrorKind::kConfig, "loader: pin_memory needs a CUDA device, and there is none. Leave it off.");
}

void pin(Batch& batch) {
  for (auto& [name, tensor] : batch.tensors) tensor = tensor.pin_memory();
}

/// One seed for every sample: a chain of splitmix64 finalisers over what the sample is.
std::uint64_t chain(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15ULL + value * 0xD1342543DE82EF95ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace

struct Loader::State {
  std::shared_ptr<const Dataset> dataset;
  EpisodeAwareSampler sampler;
  LoaderOptions options;
  BatchPlan plan;
  std::int64_t handed_out = 0;
  std::mutex mutex;
  std::map<std::int64_t, at::Tensor> orders;  // of the epochs that threads are at work on
  std::optional<Prefetcher> prefetcher;       // last: its threads use all of the above

  [[nodiscard]] at::Tensor order(std::int64_t epoch) {
    const std::lock_guard lock(mutex);
    if (const auto it = orders.find(epoch); it != orders.end()) return it->second;
    at::Tensor made = sampler.order(epoch);
    orders.emplace(epoch, made);
    // Threads are at most `capacity` batches apart, which may span several short epochs.
    while (orders.size() > 8) orders.erase(orders.begin());
    return made;
  }

  [[nodiscard]] Batch make(std::int64_t ticket) {
    const Round round = plan.round(ticket);
    try {
      const at::Tensor order_of_epoch = order(round.epoch);
      const auto* frames = order_of_epoch.const_data_ptr<std::int64_t>();
      const std::vector<std::int64_t> places = plan.positions(round, options.dp_rank);
      std::vector<std::int64_t> rows;
      std::vector<std::uint64_t> seeds;
      for (std::size_t i = 0; i < places.size(); ++i) {
        rows.push_back(dataset->position(sampler.frame(frames[places[i]])));
        std::uint64_t seed = chain(options.seed, static_cast<std::uint64_t>(options.dp_rank));
        seed = chain(seed, static_cast<std::uint64_t>(round.epoch));
        seeds.push_back(chain(seed, static_cast<std::uint64_t>(round.begin) + i));
      }
      Batch batch = dataset->collate(rows, seeds);
      if (options.pin_memory) pin(batch);
      return batch;
    } catch (const Error& e) {
      fail(e.kind(), "loader of rank {}: epoch {}, samples from {}: {}", options.dp_rank, round.epoch, round.begin,
           e.what());
    } catch (const std::exception& e) {
      fail(ErrorKind::kDataset, "loader of rank {}: epoch {}, samples from {}: {}", options.dp_rank, round.epoch,
           round.begin, e.what());
    }
  }
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, EpisodeAwareSampler sampler, const LoaderOptions& options,
               log::Logger& logger, const Progress& start) {
  check(options);
  BatchPlan plan({sampler.num_frames(), options.batch_size, options.dp_world}, start);
  state_ = std::unique_ptr<State>(new State{std::move(dataset), std::move(sampler), options, plan, 0, {}, {}, {}});
  const Cores cores = count_cores();
  if (const auto warning = binding_warning(options.num_workers, cores)) logger.warning("{}", *warning);
  State* state = state_.get();
  state_->prefetcher.emplace([state](std::int64_t ticket) { return state->make(ticket); },
                             loader_threads(options.num_workers, cores),
                             static_cast<std::int64_t>(options.num_workers) * options.prefetch_factor);
}

Loader::~Loader() = default;

Batch Loader::next() {
  std::optional<Batch> batch = state_->prefetcher->next();
  ++state_->handed_out;
  return std::move(*batch);
}

double Loader::last_wait_s() const { return state_->prefetcher->last_wait_s(); }
const BatchPlan& Loader::plan() const { return state_->plan; }
Progress Loader::progress() const { return state_->plan.progress(state_->handed_out); }

struct EvalLoader::State {
  std::shared_ptr<const Dataset> dataset;
  std::vector<std::int64_t> positions;
  LoaderOptions options;
  std::int64_t num_batches = 0, num_rounds = 0, round = 0;
  std::optional<Prefetcher> prefetcher;

  [[nodiscard]] std::int64_t batch_of(std::int64_t at_round) const {
    return at_round * options.dp_world + options.dp_rank;
  }

  [[nodiscard]] Batch make(std::int64_t at_round) const {
    const std::int64_t wanted = batch_of(at_round);
    const std::int64_t number = wanted < num_batches ? wanted : num_batches - 1;  // a stand-in: any batch will do
    const std::span<const std::int64_t> all(positions);
    const auto begin = static_cast<std::size_t>(number * options.batch_size);
    try {
      Batch batch = dataset->collate(
          all.subspan(begin, std::min(static_cast<std::size_t>(options.batch_size), all.size() - begin)));
      if (options.pin_memory) pin(batch);
      return batch;
    } catch (const Error& e) {
      fail(e.kind(), "evaluation loader of rank {}: batch {}: {}", options.dp_rank, number, e.what());
    }
  }

  void start_pass() {
    round = 0;
    prefetcher.emplace([this](std::int64_t ticket) { return make(ticket); },
                       loader_threads(options.num_workers, count_cores()),
                       static_cast<std::int64_t>(options.num_workers) * options.prefetch_factor, num_rounds);
  }
};

EvalLoader::EvalLoader(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> positions,
                       const LoaderOptions& options)
    : state_(std::make_unique<State>()) {
  check(options);
  state_->num_batches = (static_cast<std::int64_t>(positions.size()) + options.batch_size - 1) / options.batch_size;
  state_->num_rounds = (state_->num_batches + options.dp_world - 1) / options.dp_world;
  state_->dataset = std::move(dataset);
  state_->positions = std::move(positions);
  state_->options = options;
}

EvalLoader::~EvalLoader() = default;

std::int64_t EvalLoader::num_rounds() const { return state_->num_rounds; }

std::optional<EvalBatch> EvalLoader::next() {
  // Threads live for one pass: held-out evaluation is rare, and they would sit on memory in between.
  if (!state_->prefetcher) state_->start_pass();
  std::optional<Batch> batch = state_->prefetcher->next();
  if (!batch) {
    state_->prefetcher.reset();
    return std::nullopt;
  }
  const bool counts = state_->batch_of(state_->round++) < state_->num_batches;
  return EvalBatch{std::move(*batch), counts};
}

}  // namespace lerobot::data
