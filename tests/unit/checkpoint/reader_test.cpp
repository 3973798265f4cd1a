#include "lerobot/checkpoint/reader.hpp"

#include <catch2/catch.hpp>

#include "lerobot/checkpoint/layout.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/manifest.hpp"
#include "support.hpp"

using namespace lerobot;
using namespace lerobot::test;

TEST_CASE("ModelReader: weights of real runs equal the recorded ones bit for bit", "[reader][unit]") {
  for (const auto& [run, step] : {std::pair{"single", "000006"}, {"ddp2", "000006"}, {"single_sched", "000003"}}) {
    INFO(run);
    const fs::path folder = kGolden / run / "run/checkpoints" / step;
    const formats::SafetensorsFile expected(kGolden / run / "expected" /
                                            ("step_" + std::string(step) + ".safetensors"));
    auto model = zeros_like_file(expected.path(), "model.");
    auto buffers = zeros_like_file(expected.path(), "buffer.");
    const std::size_t num_params = model.size();
    model.insert(model.end(), buffers.begin(), buffers.end());
    const auto report = checkpoint::ModelReader(folder / "pretrained_model").load(model);
    CHECK(report.missing.empty());
    CHECK(report.unexpected.empty());
    CHECK(num_params == 73);
    for (std::size_t i = 0; i < model.size(); ++i) {
      INFO(model[i].first);
      CHECK(same_bits(model[i].second.local,
                      tensor_in(expected, (i < num_params ? "model." : "buffer.") + model[i].first)));
    }
  }
}

TEST_CASE("ModelReader: a slice gets its rows, a destination keeps its dtype, names that do not meet are reported",
          "[reader][unit]") {
  const fs::path pretrained = kGolden / "single/run/checkpoints/000006/pretrained_model";
  const formats::SafetensorsFile file(pretrained / "model.safetensors");
  const std::string name = "model.encoder.layers.0.linear1.weight";
  const at::Tensor whole = tensor_in(file, name);
  const auto shape = whole.sizes().vec();
  const mesh::TensorSlice rows{at::zeros({5, shape[1]}), shape, 27, true};
  const mesh::TensorSlice none{at::zeros({0, shape[1]}), shape, 32, true};
  const mesh::TensorSlice half{at::zeros(shape, at::kBFloat16), shape, 0, false};
  const checkpoint::ModelReader reader(pretrained);
  const auto report = reader.load({{name, rows}, {"other", none}});
  CHECK(same_bits(rows.local, whole.slice(0, 27, 32)));
  CHECK(report.missing == std::vector<std::string>{"other"});
  CHECK(report.unexpected.size() == file.entries().size() - 1);
  (void)reader.load({{name, none}});
  (void)reader.load({{name, half}});
  CHECK(same_bits(half.local, whole.to(at::kBFloat16)));
  CHECK_THROWS_WITH(reader.load({{name, {at::zeros({3}), {3}, 0, false}}}),
                    Catch::Contains(name) && Catch::Contains("[3]") && Catch::Contains("model.safetensors"));
  CHECK_THROWS_WITH(checkpoint::ModelReader(kGolden), Catch::Contains("model.safetensors"));
}

TEST_CASE("TrainingStateReader: optimizer state of real runs equals the recorded one bit for bit", "[reader][unit]") {
  const fs::path folder = kGolden / "single/run/checkpoints/000006";
  const checkpoint::TrainingStateReader reader(folder);
  CHECK(reader.optimizer_form() == checkpoint::OptimizerForm::kByIndex);
  auto state = zeros_like_file(folder / "training_state/optimizer_state.safetensors");
  reader.load_optimizer_state(state);
  const auto order = Json::parse(slurp(kGolden / "single/expected/step_000006.json")).at("param_order_in_optimizer");
  const formats::SafetensorsFile expected(kGolden / "single/expected/step_000006.safetensors");
  std::size_t compared = 0;
  for (const auto& param : order)
    for (const std::string entry : {"step", "exp_avg", "exp_avg_sq"}) {
      const std::string name = "state/" + std::to_string(param.at("index").get<int>()) + "/" + entry;
      if (!reader.has_optimizer_entry(name)) continue;
      const auto found = std::find_if(state.begin(), state.end(), [&](const auto& item) { return item.first == name; });
      REQUIRE(found != state.end());
      CHECK(same_bits(found->second.local,
                      tensor_in(expected, "optim." + param.at("name").get<std::string>() + "." + entry)));
      ++compared;
    }
  CHECK(compared == state.size());
  CHECK(compared > 200);
  CHECK_FALSE(reader.has_optimizer_entry("state/999/step"));
  CHECK(reader.optimizer_groups().size() == 2);
  CHECK(reader.training_step().step == 6);
  CHECK_FALSE(reader.has(checkpoint::kSchedulerFile));
  CHECK_FALSE(reader.rank_rng_states());
}

TEST_CASE("TrainingStateReader: a folder without state, and the layout of 0.6.x for a sharded run, are refused",
          "[reader][unit]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(checkpoint::TrainingStateReader(folder.path),
                    Catch::Contains("training_state") && Catch::Contains("not a directory"));
  fs::create_directories(folder.path / "training_state");
  const checkpoint::TrainingStateReader reader(folder.path);
  spill(folder.path / "training_state/training_step.json", R"({"step": 3, "num_processes": 2})");
  CHECK_NOTHROW(reader.require_resumable(false));
  CHECK_THROWS_WITH(reader.require_resumable(true), Catch::Contains("optimizer_0"));
  spill(folder.path / "training_state/optimizer_state.safetensors", "");
  CHECK_THROWS_WITH(reader.require_resumable(true),
                    Catch::Contains("optimizer_0") && Catch::Contains("0.6.x") && Catch::Contains("--policy.path"));
  spill(folder.path / "training_state/training_step.json", R"({"step": 3, "parallelism": {"dp_shard": 1}})");
  CHECK_NOTHROW(reader.require_resumable(true));
}

TEST_CASE("reader: a flipped byte is found where it is read, and only there", "[reader][unit]") {
  const TemporaryFolder folder;
  const fs::path step = folder.path / "000006";
  fs::copy(kGolden / "single/run/checkpoints/000006", step, fs::copy_options::recursive);
  formats::describe_directory(step).write(step);
  const std::string name = "model.encoder.layers.0.linear1.weight";
  const fs::path path = step / "pretrained_model/model.safetensors";
  const formats::SafetensorsFile file(path);
  const auto place = file.data_offset() + file.at(name).begin + 40;
  std::string bytes = slurp(path);
  bytes[place] = static_cast<char>(bytes[place] ^ 4);
  spill(path, bytes);
  const auto shape = file.at(name).shape;
  const checkpoint::ModelReader reader(step / "pretrained_model");
  CHECK_THROWS_WITH(reader.load({{name, {at::zeros(shape), shape, 0, false}}}),
                    Catch::Contains(name) && Catch::Contains("model.safetensors"));
  CHECK_NOTHROW(reader.load({{"model.action_head.bias", {at::zeros({2}), {2}, 0, false}}}));

  const fs::path json = step / "training_state/training_step.json";
  std::string text = slurp(json);
  text.replace(text.find("6"), 1, "7");
  spill(json, text);
  CHECK_THROWS_WITH(checkpoint::TrainingStateReader(step).training_step(), Catch::Contains("training_step.json"));
}
