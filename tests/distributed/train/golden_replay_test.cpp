// Recorded runs of LeRobot (Python), replayed by the Trainer itself through its seams: initial weights, batches and
// noise come from the recording; losses, norms, rates and parameters must come out.
#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "lerobot/comm/comm.hpp"
#include "lerobot/config/config.hpp"
#include "lerobot/formats/safetensors.hpp"
#include "lerobot/processors/tensor_file.hpp"
#include "lerobot/train/train.hpp"
#include "support/golden_run.hpp"
#include "support/run_program.hpp"

namespace lerobot {
namespace {

namespace fs = std::filesystem;
using test::GoldenRun;
using test::TraceStep;

/// Batches of a recording, by frame number.
class RecordedBatches final : public data::BatchSource {
 public:
  RecordedBatches(data::Dataset& dataset, const std::vector<TraceStep>& steps) : dataset_(dataset), steps_(steps) {}
  data::Batch next() override {
    std::vector<std::int64_t> positions;
    for (const auto index : steps_.at(next_++).index) positions.push_back(dataset_.position(index));
    return dataset_.collate(positions);
  }
  double last_wait_s() const override { return 0; }

 private:
  data::Dataset& dataset_;
  const std::vector<TraceStep>& steps_;
  std::size_t next_ = 0;
};

/// Puts recorded weights into a policy.
void set_weights(policies::Policy& policy, const fs::path& file) {
  torch::NoGradGuard no_grad;
  const auto tensors = processors::read_tensor_file(file);
  for (const auto& entry : policy.named_parameters()) {
    const auto found = tensors.find("model." + entry.key());
    REQUIRE(found != tensors.end());
    entry.value().copy_(found->second);
  }
}

struct Tolerance {
  double loss = 1e-5;       ///< relative, first two steps; 1e-3 later
  double parameter = 1e-4;  ///< absolute, for 99 % of the elements; all are within steps x lr
};

/// Elements of `name` whose gradient is rounding only: attention's key bias, and the decoder's self-attention on its
/// zero input. AdamW makes steps of up to lr from them.
bool is_rounding_only(const std::string& name) { return name.find("in_proj") != std::string::npos; }

void check_parameters(const fs::path& checkpoint, const fs::path& expected, std::int64_t updates, double lr) {
  const auto ours = processors::read_tensor_file(checkpoint / "pretrained_model/model.safetensors");
  std::size_t compared = 0;
  for (const auto& [key, value] : processors::read_tensor_file(expected)) {
    if (key.rfind("model.", 0) != 0) continue;
    const std::string name = key.substr(6);
    INFO(name);
    REQUIRE(ours.count(name) == 1);
    const at::Tensor difference = (ours.at(name) - value).abs();
    CHECK(difference.max().item<double>() <= static_cast<double>(updates) * lr);
    if (!is_rounding_only(name)) CHECK((difference <= 1e-4).to(torch::kFloat).mean().item<double>() >= 0.99);
    ++compared;
  }
  CHECK(compared > 50);
}

/// Replays `name` up to its last step; `from`: weights to start with, empty for those of the configuration.
void replay(const std::string& name, const fs::path& from, std::int64_t updates_per_step_divisor = 1) {
  comm::MpiEnvironment mpi;
  const comm::ProcessGroupPtr world = mpi.world({.timeout_s = 60});
  const GoldenRun golden = test::golden_run(name);
  REQUIRE(static_cast<int>(golden.ranks.size()) == world->getSize());
  const auto& trace = golden.ranks[static_cast<std::size_t>(world->getRank())];

  const test::TemporaryFolder folder;
  const std::string shared = comm::broadcast_text(*world, folder.path().string());
  std::vector<std::string> arguments = golden.arguments;
  arguments.push_back("--dataset.root=" + (test::test_data() / "datasets/pusht_mini_state").string());
  arguments.push_back("--checkpoint_format=safetensors");  // shards are not written yet: gathered weights are compared
  arguments.push_back("--output_dir=" + shared + "/run");
  const auto registry = policies::built_in_policies();
  config::Environment environment = config::process_environment();
  environment.world_size = world->getSize();
  environment.built = config::BuiltFeatures::all();
  log::Logger logger(world->getRank());

  std::vector<train::StepRecord> records;
  std::size_t draws = 0;
  train::Seams seams;
  seams.batches = [&](data::Dataset& dataset) { return std::make_unique<RecordedBatches>(dataset, trace); };
  seams.noise = [&](at::IntArrayRef shape, const at::TensorOptions& options) {
    const at::Tensor noise = trace.at(draws++).noise.at(0);
    REQUIRE(noise.sizes() == shape);
    return noise.to(options);
  };
  if (!from.empty()) seams.on_policy = [&](policies::Policy& policy) { set_weights(policy, from); };
  seams.on_step = [&](const train::StepRecord& record) { records.push_back(record); };
  const config::ParsedTrain parsed = config::parse_train(arguments, registry, environment);
  train::Trainer trainer(parsed, {.world = world}, registry, logger, seams);
  trainer.run();

  REQUIRE(records.size() == trace.size());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    INFO("rank " << world->getRank() << " micro-batch " << i + 1);
    const double tolerance = i < 2 ? 1e-5 : 1e-3;
    CHECK(records[i].loss == Approx(trace[i].loss).epsilon(tolerance));
    for (const auto& [key, value] : records[i].outputs)
      CHECK(value == Approx(trace[i].outputs.at(key)).epsilon(tolerance * 2));
    CHECK(records[i].is_update == trace[i].sync);
    CHECK(records[i].index == trace[i].index);
    if (trace[i].grad_norm && records[i].is_update)
      CHECK(records[i].grad_norm.value() == Approx(*trace[i].grad_norm).epsilon(i < 2 ? 1e-4 : 5e-3));
    for (std::size_t g = 0; g < trace[i].lr.size(); ++g)
      CHECK(records[i].lr[g] == Approx(trace[i].lr[g]).epsilon(1e-12));
  }
  comm::barrier(*world);
  if (world->getRank() == 0) {
    for (const auto& entry : fs::directory_iterator(golden.folder / "expected")) {
      const std::string stem = entry.path().stem().string();
      if (entry.path().extension() != ".safetensors" || stem.rfind("step_", 0) != 0) continue;
      const fs::path checkpoint = fs::path(shared) / "run/checkpoints" / stem.substr(5);
      REQUIRE(fs::exists(checkpoint));
      check_parameters(checkpoint, entry.path(), parsed.config.steps / updates_per_step_divisor, 1e-3);
    }
  }
  comm::barrier(*world);
}

fs::path first_weights() { return test::test_data() / "checkpoints/single/expected/before_first_update.safetensors"; }

bool has_ranks(int n) { return comm::MpiEnvironment().world_size() == n; }

TEST_CASE("replay: single", "[train]") {
  if (has_ranks(1)) replay("single", first_weights());
}
TEST_CASE("replay: single with a schedule", "[train]") {
  if (has_ranks(1)) replay("single_sched", first_weights());
}
TEST_CASE("replay: single with accumulation", "[train]") {
  if (has_ranks(1)) replay("single_ga", first_weights(), 2);
}
TEST_CASE("replay: twenty steps of a single process", "[train]") {
  if (has_ranks(1)) replay("trajectory20_single", first_weights());
}
TEST_CASE("replay: fine-tuning from a checkpoint", "[train]") {
  if (has_ranks(1)) replay("trajectory20_frozen_start", {});
}
TEST_CASE("replay: a resumed single run", "[train]") {
  if (has_ranks(1)) replay("resume_single", {});
}
TEST_CASE("replay: a resumed run with a schedule", "[train]") {
  if (has_ranks(1)) replay("resume_sched", {});
}
TEST_CASE("replay: DDP on two ranks", "[train]") {
  if (has_ranks(2)) replay("ddp2", first_weights());
}
TEST_CASE("replay: DDP with accumulation", "[train]") {
  if (has_ranks(2)) replay("ddp2_ga", first_weights(), 2);
}
TEST_CASE("replay: twenty steps of DDP", "[train]") {
  if (has_ranks(2)) replay("trajectory20_ddp2", first_weights());
}
TEST_CASE("replay: a resumed DDP run", "[train]") {
  if (has_ranks(2)) replay("resume_ddp2", {});
}

TEST_CASE("replay: FSDP on two ranks", "[train]") {
  if (has_ranks(2)) replay("fsdp2_safetensors", first_weights());
}
TEST_CASE("replay: FSDP that keeps gathered parameters", "[train]") {
  if (has_ranks(2)) replay("fsdp2_noreshard_dcp", first_weights());
}
TEST_CASE("replay: FSDP with accumulation", "[train]") {
  if (has_ranks(2)) replay("fsdp2_ga_dcp", first_weights(), 2);
}
TEST_CASE("replay: FSDP with a schedule", "[train]") {
  if (has_ranks(2)) replay("fsdp2_sched_dcp", first_weights());
}
TEST_CASE("replay: twenty steps of FSDP", "[train]") {
  if (has_ranks(2)) replay("trajectory20_fsdp2", first_weights());
}
TEST_CASE("replay: FSDP on four ranks", "[train]") {
  if (has_ranks(4)) replay("fsdp4_dcp", first_weights());
}
TEST_CASE("replay: HSDP, two groups of two", "[train]") {
  if (has_ranks(4)) replay("hsdp2x2_dcp", first_weights());
}

}  // namespace
}  // namespace lerobot
