#include "lerobot/checkpoint/manager.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <limits>

#include "lerobot/checkpoint/reader.hpp"
#include "lerobot/comm/in_process.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/json.hpp"
#include "support.hpp"

using namespace lerobot;
using namespace lerobot::test;
using checkpoint::CheckpointContents;
using checkpoint::CheckpointManager;

namespace {

struct QuietLogger : log::Logger {
  std::vector<std::string> lines;
  void write(log::Level, std::string_view line) override { lines.emplace_back(line); }
};

CheckpointContents small_contents(std::int64_t step, float fill = 1.0F) {
  CheckpointContents contents;
  contents.total_steps = 10;
  contents.training_step.step = step;
  const at::Tensor weight = at::full({4, 3}, fill), tied = weight;
  contents.model = {{"b.weight", {weight, {4, 3}, 0, false}},
                    {"a.weight", {tied, {4, 3}, 0, false}},
                    {"scalar", {at::scalar_tensor(2.5), {}, 0, false}}};
  contents.optimizers.push_back({"", {{"state/0/step", {at::scalar_tensor(1.0), {}, 0, false}}}, Json::array()});
  checkpoint::seed_python_and_numpy(contents.rng, 1);
  contents.rank_rng = checkpoint::capture_torch_rng();
  return contents;
}

}  // namespace

TEST_CASE("CheckpointManager: what was read from a real checkpoint is written again byte for byte", "[manager][unit]") {
  for (const auto& [run, step] : {std::pair{"single", "000006"}, {"ddp2", "000006"}, {"single_sched", "000006"}}) {
    INFO(run);
    const TemporaryFolder folder;
    const fs::path golden = kGolden / run / "run/checkpoints" / step;
    const checkpoint::TrainingStateReader reader(golden);
    CheckpointContents contents;
    contents.total_steps = 6;
    contents.training_step = reader.training_step();
    contents.model = zeros_like_file(golden / "pretrained_model/model.safetensors");
    (void)checkpoint::ModelReader(golden / "pretrained_model").load(contents.model);
    auto state = zeros_like_file(golden / "training_state/optimizer_state.safetensors");
    reader.load_optimizer_state(state);
    contents.optimizers.push_back({"", state, reader.optimizer_groups()});
    if (reader.has(checkpoint::kSchedulerFile)) contents.scheduler = reader.json(checkpoint::kSchedulerFile);
    contents.rng = reader.rng_state();
    contents.rank_rng.cpu = contents.rng.torch;
    contents.write_model_files = [&](const fs::path& where) {
      fs::copy(golden / "pretrained_model/config.json", where);
    };

    QuietLogger logger;
    CheckpointManager manager({.directory = folder.path / "checkpoints"}, {}, logger);
    const fs::path saved = manager.save(contents);
    CHECK(saved == folder.path / "checkpoints" / step);
    CHECK(fs::read_symlink(folder.path / "checkpoints/last") == step);
    int compared = 0;
    for (const auto& entry : fs::recursive_directory_iterator(golden)) {
      if (!entry.is_regular_file()) continue;
      const fs::path name = entry.path().lexically_relative(golden);
      if (name.parent_path() == "pretrained_model" && name.filename() != "model.safetensors") continue;
      INFO(name);
      CHECK(slurp(saved / name) == slurp(entry.path()));
      ++compared;
    }
    CHECK(compared == (contents.scheduler ? 6 : 5));
    CHECK(fs::exists(saved / "pretrained_model/config.json"));
    CHECK(checkpoint::TrainingStateReader(saved).rank_rng_states()->cpu.size(0) == 1);
    CHECK(logger.lines.empty());
  }
}

TEST_CASE("CheckpointManager: tied tensors are stored once, and both names load", "[manager][unit]") {
  const TemporaryFolder folder;
  QuietLogger logger;
  const fs::path saved = CheckpointManager({.directory = folder.path}, {}, logger).save(small_contents(3, 7.0F));
  const formats::SafetensorsFile file(saved / "pretrained_model/model.safetensors");
  CHECK(file.entries().size() == 2);
  CHECK(file.metadata("b.weight") == "a.weight");
  CHECK(file.metadata("format") == "pt");
  const mesh::StateDict both{{"a.weight", {at::zeros({4, 3}), {4, 3}, 0, false}},
                             {"b.weight", {at::zeros({4, 3}), {4, 3}, 0, false}}};
  CHECK(checkpoint::ModelReader(saved / "pretrained_model").load(both).missing.empty());
  CHECK(at::equal(both[1].second.local, at::full({4, 3}, 7.0F)));
}

TEST_CASE("CheckpointManager: keeps the newest, sweeps what a crash left, writes a step anew", "[manager][unit]") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path / ".incomplete-000002/pretrained_model");
  fs::create_directories(folder.path / "notes");
  QuietLogger logger;
  CheckpointManager manager({.directory = folder.path, .keep_last = 2}, {}, logger);
  for (const std::int64_t step : {2, 4, 6, 6, 8}) manager.save(small_contents(step));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"000006", "000008", "last", "notes"});
  CHECK(checkpoint::TrainingStateReader(folder.path / "last").training_step().step == 8);
  REQUIRE(logger.lines.size() == 1);
  CHECK(logger.lines[0].find(".incomplete-000002") != std::string::npos);
}

TEST_CASE("CheckpointManager: weights that are not finite never become last", "[manager][unit]") {
  const TemporaryFolder folder;
  QuietLogger logger;
  CheckpointManager manager({.directory = folder.path}, {}, logger);
  manager.save(small_contents(2));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    auto contents = small_contents(4);
    contents.model[0].second.local[2][1] = bad;
    manager.save(contents);
    CHECK(fs::read_symlink(folder.path / "last") == "000002");
  }
  CHECK(logger.lines.size() == 2);
  CHECK(logger.lines[0].find("not finite") != std::string::npos);
}

TEST_CASE("CheckpointManager: last that is no link is left alone, and nothing is written", "[manager][unit]") {
  const TemporaryFolder folder;
  spill(folder.path / "last", "mine");
  QuietLogger logger;
  CheckpointManager manager({.directory = folder.path}, {}, logger);
  CHECK_THROWS_WITH(manager.save(small_contents(2)), Catch::Contains("file exists"));
  CHECK(slurp(folder.path / "last") == "mine");
  CHECK_FALSE(fs::exists(folder.path / "000002"));
}

TEST_CASE("CheckpointManager: a full disk leaves last and the older checkpoint as they were", "[manager][unit]") {
  const TemporaryFolder folder;
  QuietLogger logger;
  CheckpointManager manager({.directory = folder.path}, {}, logger);
  manager.save(small_contents(2));
  auto contents = small_contents(4);
  contents.model.emplace_back("large", mesh::TensorSlice{at::ones({1 << 18}), {1 << 18}, 0, false});
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{1 << 19, limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    manager.save(contents);
  } catch (const Error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, old_handler);
  CHECK(message.find("model.safetensors") != std::string::npos);
  CHECK(message.find("File too large") != std::string::npos);
  CHECK(fs::read_symlink(folder.path / "last") == "000002");
  CHECK_FALSE(fs::exists(folder.path / "000004"));
  CHECK_FALSE(fs::exists(folder.path / ".incomplete-000004"));
  manager.save(contents);
  CHECK(fs::read_symlink(folder.path / "last") == "000004");
}

TEST_CASE("CheckpointManager: a failure on the main rank is thrown on every rank", "[manager][unit]") {
  const TemporaryFolder folder;
  std::atomic<int> num_agreed = 0;
  const auto contents = small_contents(2);
  comm::run_ranks(2, [&](const comm::ProcessGroupPtr& world, int) {
    QuietLogger logger;
    CheckpointManager manager({.directory = folder.path}, {.world = world}, logger);
    auto mine = contents;
    mine.write_model_files = [](const fs::path&) { fail(ErrorKind::kCheckpoint, "no config to write"); };
    try {
      manager.save(mine);
    } catch (const Error& error) {
      if (std::string(error.what()).find("no config to write") != std::string::npos) ++num_agreed;
    }
    manager.save(contents);
  });
  CHECK(num_agreed == 2);
  CHECK(fs::read_symlink(folder.path / "last") == "000002");
  CHECK(checkpoint::TrainingStateReader(folder.path / "last").rank_rng_states()->cpu.size(0) == 2);
}

TEST_CASE("CheckpointManager: shard formats need a sharded run", "[manager][unit]") {
  QuietLogger logger;
  CHECK_THROWS_WITH(CheckpointManager({.directory = ".", .format = checkpoint::CheckpointFormat::kDcp}, {}, logger),
                    Catch::Contains("dcp") && Catch::Contains("dp_shard"));
  CHECK_THROWS_WITH(checkpoint::parse_checkpoint_format("zip"),
                    Catch::Contains("zip") && Catch::Contains("safetensors, dcp or safetensors_dcp"));
}
