#include "lerobot/processors/pipeline.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "lerobot/core/error.hpp"

namespace {

using namespace lerobot;
using namespace lerobot::processors;
namespace fs = std::filesystem;

fs::path act(const std::string& name) { return fs::path(LEROBOT_TEST_DATA) / "act" / name; }

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder that is gone at the end of the test.
struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / fmt::format("lerobot_pipeline_test_{}", ::getpid());
  TemporaryFolder() { fs::create_directories(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was thrown)";
}

const std::vector<std::string> kCases{"state_dec1",  "state_dec2", "state_prenorm_gelu",
                                      "state_novae", "image_dec1", "image_dec2"};

}  // namespace

TEST_CASE("Pipeline: what LeRobot (Python) wrote is written again byte for byte", "[pipeline]") {
  for (const std::string& name : kCases) {
    for (const std::string pipeline : {kPreProcessor, kPostProcessor}) {
      INFO(name << " " << pipeline);
      const TemporaryFolder out;
      const std::vector<std::string> files = Pipeline::load(act(name), pipeline).save(out.path);
      REQUIRE(files.size() == 2);
      for (const std::string& file : files) {
        INFO(file);
        CHECK(read_file(out.path / file) == read_file(act(name) / file));
      }
    }
  }
}

TEST_CASE("Pipeline: new pipelines have the files of LeRobot (Python)", "[pipeline]") {
  for (const std::string& name : kCases) {
    INFO(name);
    // The post-processor's file has the statistics as the dataset gave them: count of a camera is still [1] there.
    Stats stats;
    for (auto& [key, tensor] :
         read_tensor_file(act(name) / "policy_postprocessor_step_0_unnormalizer_processor.safetensors"))
      stats[key.substr(0, key.rfind('.'))][key.substr(key.rfind('.') + 1)] = tensor;
    PipelineOptions options;
    options.stats = stats;
    options.norm_map = {{FeatureType::kVisual, NormalizationMode::kMeanStd},
                        {FeatureType::kState, NormalizationMode::kMeanStd},
                        {FeatureType::kAction, NormalizationMode::kMeanStd}};
    options.input_features =
        name.starts_with("image")
            ? std::vector<PolicyFeature>{{"observation.image", FeatureType::kVisual, {3, 96, 96}},
                                         {"observation.state", FeatureType::kState, {2}}}
            : std::vector<PolicyFeature>{{"observation.environment_state", FeatureType::kEnv, {16}},
                                         {"observation.state", FeatureType::kState, {2}}};
    options.output_features = {{"action", FeatureType::kAction, {2}}};
    const TemporaryFolder out;
    for (const std::string& file : make_pre_processor(options).save(out.path))
      CHECK(read_file(out.path / file) == read_file(act(name) / file));
    for (const std::string& file : make_post_processor(options).save(out.path))
      CHECK(read_file(out.path / file) == read_file(act(name) / file));
  }
}

TEST_CASE("Pipeline: a collated batch becomes what LeRobot (Python) feeds its policy", "[pipeline]") {
  for (const std::string& name : kCases) {
    if (!fs::exists(act(name) / "batch_raw.safetensors")) continue;
    INFO(name);
    Batch raw;
    raw.tensors = read_tensor_file(act(name) / "batch_raw.safetensors");
    const TensorMap expected = read_tensor_file(act(name) / "batch_normalized.safetensors");
    const Batch batch = Pipeline::load(act(name), kPreProcessor)(raw);
    CHECK(batch.tensors.size() == expected.size());
    for (const auto& [key, tensor] : expected) {
      INFO(key);
      REQUIRE(batch.tensors.contains(key));
      CHECK(at::equal(batch.tensors.at(key), tensor));
    }
  }
}

TEST_CASE("Pipeline: actions go back to the robot's units as in LeRobot (Python)", "[pipeline]") {
  for (const std::string& name : kCases) {
    INFO(name);
    const TensorMap eval = read_tensor_file(act(name) / "eval.safetensors");
    const Pipeline post = Pipeline::load(act(name), kPostProcessor);
    CHECK(at::equal(post(eval.at("predict_action_chunk")), eval.at("predict_action_chunk.postprocessed")));
    CHECK(at::equal(post(eval.at("select_action.queue")), eval.at("select_action.queue.postprocessed")));
  }
}

TEST_CASE("Pipeline: overrides replace settings and statistics, and nothing else", "[pipeline]") {
  PipelineOptions options;
  options.input_features = {{"observation.state", FeatureType::kState, {2}}};
  options.output_features = {{"action", FeatureType::kAction, {2}}};
  options.norm_map = {{FeatureType::kState, NormalizationMode::kMinMax},
                      {FeatureType::kAction, NormalizationMode::kIdentity}};
  options.rename_map = {{"observation.agent", "observation.state"}};
  options.stats["observation.state"] = {{"min", at::zeros({2})}, {"max", at::full({2}, 4.0)}};
  Batch batch;
  batch.tensors["observation.agent"] = at::full({1, 2}, 3.0);
  batch.tensors["observation.agent_is_pad"] = at::zeros({1}, at::kBool);
  batch.tensors["action"] = at::ones({1, 2});

  const Pipeline fine_tune = Pipeline::load(act("state_dec1"), kPreProcessor, pre_processor_overrides(options, true));
  const Batch tuned = fine_tune(batch);
  CHECK(at::allclose(tuned.tensors.at("observation.state"), at::full({1, 2}, 0.5)));
  CHECK(tuned.tensors.contains("observation.state_is_pad"));
  CHECK_FALSE(tuned.tensors.contains("observation.agent"));
  CHECK(at::equal(tuned.tensors.at("action"), at::ones({1, 2})));

  // Resume: the stored statistics stay.
  const Pipeline resumed = Pipeline::load(act("state_dec1"), kPreProcessor, pre_processor_overrides(options, false));
  const TensorMap stored =
      read_tensor_file(act("state_dec1") / "policy_preprocessor_step_3_normalizer_processor.safetensors");
  const at::Tensor low = stored.at("observation.state.min"), high = stored.at("observation.state.max");
  CHECK(at::allclose(resumed(batch).tensors.at("observation.state"), 2 * (3.0 - low) / (high - low) - 1));
  CHECK(Pipeline::load(act("state_dec1"), kPostProcessor, post_processor_overrides(options, true)).steps().size() == 2);

  const std::string unknown = message_of([] {
    Overrides overrides;
    overrides["tokenizer_processor"].config["max_length"] = 3;
    (void)Pipeline::load(act("state_dec1"), kPreProcessor, overrides);
  });
  CHECK_THAT(unknown, Catch::Contains("tokenizer_processor") && Catch::Contains("normalizer_processor"));
}

TEST_CASE("Pipeline: damaged folders are refused with the name of the file", "[pipeline]") {
  const TemporaryFolder folder;
  const auto load = [&] { (void)Pipeline::load(folder.path, kPreProcessor); };
  const auto write = [&](const std::string& text) {
    std::ofstream(folder.path / "policy_preprocessor.json") << text;
    return message_of(load);
  };
  CHECK_THAT(message_of(load), Catch::Contains("policy_preprocessor.json") && Catch::Contains("not found"));
  CHECK_THAT(write("[1]"), Catch::Contains("expected an object"));
  CHECK_THAT(write(R"({"name": "a", "steps": [{"registry_name": "no_such_step", "config": {}}]})"),
             Catch::Contains("unknown step \"no_such_step\""));
  CHECK_THAT(write(R"({"name": "a", "steps": [{"class": "my.module.Step", "config": {}}]})"),
             Catch::Contains("my.module.Step"));
  const std::string normalizer =
      R"({"name": "a", "steps": [{"registry_name": "normalizer_processor", "config": {}, "state_file": ")";
  CHECK_THAT(write(normalizer + "gone.safetensors\"}]}"),
             Catch::Contains("gone.safetensors") && Catch::Contains(folder.path.string()));
  CHECK_THAT(write(normalizer + "../secret.safetensors\"}]}"), Catch::Contains("not a bare file name"));
  CHECK_THAT(
      write(R"({"name": "a", "steps": [{"registry_name": "device_processor", "config": {"device": "toaster"}}]})"),
      Catch::Contains("toaster"));
  CHECK_THAT(
      write(R"({"name": "a", "steps": [{"registry_name": "device_processor", "config": {"float_dtype": "int8"}}]})"),
      Catch::Contains("int8") && Catch::Contains("bfloat16"));
  CHECK_THAT(write(R"({"name": "a", "steps": [{"registry_name": "to_batch_processor", "config": {"x": 1}}]})"),
             Catch::Contains("unknown setting \"x\""));
}

TEST_CASE("ToBatch: single samples get a batch dimension, batches stay", "[pipeline]") {
  Batch batch;
  batch.tensors = {{"action", at::zeros({2})},
                   {"observation.state", at::zeros({4})},
                   {"observation.image", at::zeros({3, 5, 6})},
                   {"observation.images.top", at::zeros({1, 3, 5, 6})},
                   {"index", at::zeros({}, at::kLong)},
                   {"timestamp", at::zeros({1})}};
  ToBatch().apply(batch);
  CHECK(batch.tensors.at("action").sizes() == at::IntArrayRef{1, 2});
  CHECK(batch.tensors.at("observation.state").sizes() == at::IntArrayRef{1, 4});
  CHECK(batch.tensors.at("observation.image").sizes() == at::IntArrayRef{1, 3, 5, 6});
  CHECK(batch.tensors.at("observation.images.top").sizes() == at::IntArrayRef{1, 3, 5, 6});
  CHECK(batch.tensors.at("index").sizes() == at::IntArrayRef{1});
  CHECK(batch.tensors.at("timestamp").sizes() == at::IntArrayRef{1});
}

TEST_CASE("ToDevice: floats are cast on request, other types never", "[pipeline]") {
  Batch batch;
  batch.tensors = {{"observation.state", at::ones({1, 2})}, {"action_is_pad", at::zeros({1, 2}, at::kBool)}};
  ToDevice("cpu", "bfloat16").apply(batch);
  CHECK(batch.tensors.at("observation.state").scalar_type() == at::kBFloat16);
  CHECK(batch.tensors.at("action_is_pad").scalar_type() == at::kBool);
}
