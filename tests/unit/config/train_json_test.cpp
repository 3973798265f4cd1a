#include "lerobot/config/train_json.hpp"

#include "lerobot/formats/json.hpp"
#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;

namespace {
std::string dumped(const TrainConfig& config) { return formats::dump_python(to_json(config), 4, true); }
}  // namespace

TEST_CASE("to_json: every train_config.json of LeRobot comes back byte for byte", "[train_json]") {
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::kData / "checkpoints")) {
    if (entry.path().filename() != "train_config.json") continue;
    CAPTURE(entry.path().string());
    std::string text = test::slurp(entry.path());
    // LeRobot (Python) declares this flag as an int, so a policy that was loaded from a file is stored with 0.
    const std::string as_int = "\"replace_final_stride_with_dilation\": 0";
    if (const auto at = text.find(as_int); at != text.npos)
      text.replace(at, as_int.size(), "\"replace_final_stride_with_dilation\": false");
    CHECK(dumped(read_train_config(entry.path(), test::registry())) == text);
    ++seen;
  }
  CHECK(seen >= 14);
}

TEST_CASE("to_json: keys unknown to LeRobot 0.6.2 appear only away from their default", "[train_json]") {
  TrainConfig config = test::parse({}).config;
  Json json = to_json(config);
  CHECK_FALSE(json.contains("tf32"));
  CHECK_FALSE(json.contains("trackio"));
  CHECK_FALSE(json.contains("timeout_s"));
  CHECK_FALSE(json["accelerator"].contains("grad_scaler"));
  CHECK_FALSE(json["accelerator"]["fsdp"].contains("mixed_precision_policy"));

  config.tf32 = std::nullopt;
  config.trackio.project = "mine";
  config.accelerator.grad_scaler.growth_interval = 7;
  config.accelerator.fsdp.mixed_precision_policy.param_dtype = DType::kBF16;
  json = to_json(config);
  const auto keys = [](const Json& block) {
    std::vector<std::string> names;
    for (const auto& [key, value] : block.items()) names.push_back(key);
    return names;
  };
  const auto after = [&](const Json& block, const std::string& key) {
    const auto names = keys(block);
    const auto at = std::find(names.begin(), names.end(), key);
    return at == names.begin() || at == names.end() ? std::string() : *(at - 1);
  };
  CHECK(after(json, "tf32") == "cudnn_deterministic");
  CHECK(after(json, "trackio") == "wandb");
  CHECK(after(json["accelerator"], "grad_scaler") == "gradient_accumulation");
  CHECK(after(json["accelerator"]["fsdp"], "mixed_precision_policy") == "ignored_modules");
  CHECK(train_config_from_json(json, test::registry(), "x.json") == config);
}

TEST_CASE("to_json: an accelerator block with nothing at its default survives (U010)", "[train_json]") {
  AcceleratorConfig a;
  a.mixed_precision = MixedPrecision::kFp16;
  a.gradient_accumulation.steps = 3;
  a.grad_scaler = {1024.0, 3.0, 0.25, 5};
  a.fsdp = {false, std::nullopt, 1000, true, "model\\..*", {DType::kF16, DType::kF32, DType::kBF16, false}};
  a.ddp = {false, true, true};
  a.compile = {true, "eager", "max-autotune", false};
  a.activation_checkpointing.mode = ActivationCheckpointing::kFull;
  TrainConfig config;
  config.dataset.repo_id = "user/ds";
  config.accelerator = a;
  CHECK(train_config_from_json(formats::parse_json(dumped(config), "x.json", ErrorKind::kConfig), test::registry(),
                               "x.json")
            .accelerator == a);
}

TEST_CASE("train_config_from_json: an empty accelerator block is the default one (U011)", "[train_json]") {
  const Json json{{"dataset", {{"repo_id", "user/ds"}}}, {"accelerator", Json::object()}};
  CHECK(train_config_from_json(json, test::registry(), "x.json").accelerator == AcceleratorConfig{});
}

TEST_CASE("to_json: the folded example of a complete file", "[train_json]") {
  const TrainConfig config = test::parse_bare({"--dataset.repo_id=user/ds", "--policy.type=act", "--policy.device=cpu",
                                               "--policy.repo_id=user/p", "--output_dir=outputs/train/x"})
                                 .config;
  Json json = to_json(config);
  CHECK(json["policy"]["optimizer_lr"] == 1e-5);
  CHECK(json["optimizer"].dump() ==
        R"({"type":"adamw","lr":1e-05,"weight_decay":0.0001,"grad_clip_norm":10.0,"betas":[0.9,0.999],"eps":1e-08})");
  CHECK(json["dataset"]["video_backend"] == "pyav");
  CHECK(json["resume"] == false);
  CHECK(json["job_name"] == "act");
  CHECK(dumped(train_config_from_json(json, test::registry(), "x.json")) == dumped(config));
}

TEST_CASE("to_json: run settings are a file of their own", "[train_json]") {
  const TrainConfig config =
      test::parse({"--timeout_s=30", "--on_nonfinite=skip", "--keep_last=2", "--async_save=true"}).config;
  CHECK(to_json(config.run).dump() == R"({"async_save":true,"timeout_s":30.0,"on_nonfinite":"skip","keep_last":2})");
}
