#include "lerobot/policies/weights.hpp"

#include <torch/torch.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "lerobot/core/error.hpp"
#include "lerobot/policies/backbone_weights.hpp"
#include "lerobot/policies/pretrained.hpp"
#include "unit/policies/golden.hpp"

namespace {

using namespace lerobot;
namespace fs = std::filesystem;

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / fmt::format("lerobot_weights_test_{}", ::getpid());
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

/// The same variable as the user would set it, back to its old state at the end.
struct Environment {
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("save_weights: LeRobot's model.safetensors is written again byte for byte", "[weights]") {
  for (const std::string name : {"state_dec1", "state_prenorm_gelu", "state_novae"}) {
    INFO(name);
    const TemporaryFolder out;
    policies::ACTPolicy policy = golden::policy(name);
    policies::save_weights(*policy, out.path / "model.safetensors");
    const auto read = [](const fs::path& path) {
      std::ifstream in(path, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    CHECK(read(out.path / "model.safetensors") == read(golden::folder(name) / "model.safetensors"));
  }
}

TEST_CASE("load_weights: by name, in any order and type (B9)", "[weights]") {
  const TemporaryFolder out;
  policies::ACTPolicy policy = golden::policy("state_dec1");
  processors::TensorMap other;
  for (const auto& [name, tensor] : golden::state(*policy)) other.emplace(name, tensor.detach().to(at::kBFloat16));
  processors::write_tensor_file(out.path / "bf16.safetensors", other);
  policies::ACTPolicy target(policy->config());
  const policies::LoadReport report = policies::load_weights(*target, out.path / "bf16.safetensors");
  CHECK(report.is_complete());
  CHECK(report.warnings().empty());
  for (const auto& [name, tensor] : golden::state(*target)) {
    CHECK(tensor.scalar_type() == at::kFloat);
    CHECK(at::equal(tensor, other.at(name).to(at::kFloat)));
  }
}

TEST_CASE("load_weights: missing, unexpected and mis-shaped tensors stand in one message (B9)", "[weights]") {
  const TemporaryFolder out;
  policies::ACTPolicy policy = golden::policy("state_dec1");
  processors::TensorMap tensors;
  for (const auto& [name, tensor] : golden::state(*policy)) tensors.emplace(name, tensor.detach().clone());
  tensors.erase("model.action_head.bias");
  tensors["model.surplus"] = at::zeros({1});
  processors::write_tensor_file(out.path / "names.safetensors", tensors);

  const at::Tensor bias = policy->named_parameters()["model.action_head.bias"].detach().clone();
  const policies::LoadReport report = policies::load_weights(*policy, out.path / "names.safetensors");
  CHECK(report.missing == std::vector<std::string>{"model.action_head.bias"});
  CHECK(report.unexpected == std::vector<std::string>{"model.surplus"});
  REQUIRE(report.warnings().size() == 2);
  CHECK_THAT(report.warnings()[0], Catch::Contains("model.action_head.bias"));
  CHECK_THAT(report.warnings()[1], Catch::Contains("model.surplus"));
  CHECK(at::equal(policy->named_parameters()["model.action_head.bias"], bias));

  const auto strict = [&] {
    policies::load_weights(*policy, out.path / "names.safetensors", policies::Strictness::kStrict);
  };
  CHECK_THAT(message_of(strict), Catch::Contains("model.action_head.bias") && Catch::Contains("model.surplus"));

  tensors["model.action_head.weight"] = at::ones({14, 64});
  processors::write_tensor_file(out.path / "shapes.safetensors", tensors);
  const at::Tensor before = policy->named_parameters()["model.encoder.layers.0.linear1.weight"].detach().clone();
  CHECK_THAT(message_of([&] { policies::load_weights(*policy, out.path / "shapes.safetensors"); }),
             Catch::Contains("model.action_head.bias") && Catch::Contains("model.surplus") &&
                 Catch::Contains("model.action_head.weight (file [14, 64], model [2, 64])"));
  CHECK(at::equal(policy->named_parameters()["model.encoder.layers.0.linear1.weight"], before));
}

TEST_CASE("load_weights: an alias in the metadata is the tensor it names", "[weights]") {
  const TemporaryFolder out;
  struct Tied : torch::nn::Module {
    Tied() {
      a = register_parameter("a", at::ones({2}));
      register_parameter("b", a);
    }
    at::Tensor a;
  };
  struct Untied : torch::nn::Module {
    Untied() {
      register_parameter("a", at::zeros({2}));
      register_parameter("b", at::zeros({2}));
    }
  };
  const auto tied = std::make_shared<Tied>();
  policies::save_weights(*tied, out.path / "tied.safetensors");
  const formats::SafetensorsFile file(out.path / "tied.safetensors");
  CHECK(file.entries().size() == 1);
  CHECK(file.metadata("b") == "a");
  const auto untied = std::make_shared<Untied>();
  CHECK(policies::load_weights(*untied, out.path / "tied.safetensors").is_complete());
  for (const auto& p : untied->parameters()) CHECK(at::equal(p, at::ones({2})));
}

TEST_CASE("from_pretrained: a folder of LeRobot (Python) gives its policy and is written again", "[weights]") {
  const policies::Registry registry = policies::built_in_policies();
  const policies::Pretrained read = policies::from_pretrained(golden::folder("state_dec1"), registry);
  CHECK(read.warnings.empty());
  CHECK_FALSE(read.policy->is_training());
  CHECK(read.config == golden::json(golden::folder("state_dec1") / "config.json"));
  const auto eval = golden::tensors(golden::folder("state_dec1") / "eval.safetensors");
  policies::Batch batch = golden::batch(golden::folder("state_dec1") / "batch_normalized.safetensors");
  CHECK(at::equal(read.policy->predict_action_chunk(batch), golden::policy("state_dec1")->predict_action_chunk(batch)));

  const TemporaryFolder out;
  policies::save_pretrained(*read.policy, read.config, out.path);
  const auto text = [](const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const char* file : {"config.json", "model.safetensors"})
    CHECK(text(out.path / file) == text(golden::folder("state_dec1") / file));
}

TEST_CASE("from_pretrained: damaged folders and absent devices", "[weights]") {
  const policies::Registry registry = policies::built_in_policies();
  const TemporaryFolder out;
  const auto load = [&] { (void)policies::from_pretrained(out.path, registry); };
  CHECK_THAT(message_of(load), Catch::Contains("config.json not found in " + out.path.string()));
  std::ofstream(out.path / "config.json") << "{}";
  CHECK_THAT(message_of(load), Catch::Contains("missing type"));
  std::ofstream(out.path / "config.json") << R"({"type": "nopolicy"})";
  CHECK_THAT(message_of(load), Catch::Contains("nopolicy") && Catch::Contains("act"));
  Json config = golden::json(golden::folder("state_dec1") / "config.json");
  config["surprise"] = 1;
  std::ofstream(out.path / "config.json") << config.dump();
  CHECK_THAT(message_of(load), Catch::Contains("surprise"));
  config.erase("surprise");
  config["device"] = "mps";
  std::ofstream(out.path / "config.json") << config.dump();
  fs::copy(golden::folder("state_dec1") / "model.safetensors", out.path / "model.safetensors");
  const policies::Pretrained read = policies::from_pretrained(out.path, registry);
  REQUIRE(read.warnings.size() == 1);
  CHECK_THAT(read.warnings[0], Catch::Contains("mps"));
}

TEST_CASE("load_backbone_weights: torchvision's file by name and by path", "[weights]") {
  const TemporaryFolder out;
  const Environment home("TORCH_HOME", out.path.string());
  CHECK_THAT(message_of([] { (void)policies::find_backbone_weights("ResNet18_Weights.IMAGENET1K_V1"); }),
             Catch::Contains("resnet18-f37072fd.pth") && Catch::Contains("--policy.pretrained_backbone_weights=null"));
  CHECK_THAT(message_of([] { (void)policies::find_backbone_weights("ResNet18_Weights.NEWEST"); }),
             Catch::Contains("ResNet18_Weights.NEWEST"));
  CHECK_THAT(message_of([] { (void)policies::find_backbone_weights("/none/r.safetensors"); }),
             Catch::Contains("/none/r.safetensors"));

  nn::ResNetBackbone source("resnet18", false), target("resnet18", false);
  processors::TensorMap tensors;
  for (const auto& [name, tensor] : golden::state(*source)) {
    tensors.emplace(name, tensor);
    if (name.ends_with("running_mean"))
      tensors.emplace(name.substr(0, name.size() - 12) + "num_batches_tracked", at::ones({}, at::kLong));
  }
  tensors.emplace("fc.weight", at::zeros({1000, 512}));
  tensors.emplace("fc.bias", at::zeros({1000}));
  const fs::path file = out.path / "resnet.safetensors";
  processors::write_tensor_file(file, tensors);
  policies::load_backbone_weights(target, file.string());
  for (const auto& [name, tensor] : golden::state(*target)) CHECK(at::equal(tensor, tensors.at(name)));
  nn::ResNetBackbone deeper("resnet34", false);
  CHECK_THAT(message_of([&] { policies::load_backbone_weights(deeper, file.string()); }), Catch::Contains("Missing"));
}
