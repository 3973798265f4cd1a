// The fixture of the specification: weights by a formula, numbers recorded with LeRobot (Python).
#include <torch/torch.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "lerobot/nn/sinusoid.hpp"
#include "unit/policies/golden.hpp"

namespace {

using namespace lerobot;
using policies::ACTConfig;
using policies::ACTPolicy;
using processors::FeatureType;

ACTConfig config(bool pre_norm, bool use_vae = true) {
  ACTConfig c;
  c.input_features = {{"observation.state", FeatureType::kState, {4}},
                      {"observation.environment_state", FeatureType::kEnv, {3}},
                      {"observation.images.top", FeatureType::kVisual, {3, 32, 64}}};
  c.output_features = {{"action", FeatureType::kAction, {2}}};
  c.chunk_size = c.n_action_steps = 5;
  c.dim_model = 16;
  c.n_heads = 2;
  c.dim_feedforward = 32;
  c.n_encoder_layers = 2;
  c.n_vae_encoder_layers = 1;
  c.latent_dim = 4;
  c.dropout = 0.0;
  c.pretrained_backbone_weights.reset();
  c.pre_norm = pre_norm;
  c.use_vae = use_vae;
  return c;
}

ACTPolicy build(const ACTConfig& c) {
  ACTPolicy policy(c);
  const torch::NoGradGuard no_grad;
  std::size_t i = 0;
  for (auto& [name, tensor] : golden::state(*policy)) {  // sorted bytewise
    const double row = static_cast<double>(i++);
    const bool backbone = name.find(".backbone.") != std::string::npos;
    if (name.ends_with("vae_encoder_pos_enc")) continue;
    const at::Tensor j = at::arange(tensor.numel(), at::kDouble);
    at::Tensor value = 0.4 * at::sin(0.37 * j * j + 0.11 * j + row);
    if (name.ends_with("running_var") || (backbone && tensor.dim() == 1 && name.ends_with("weight")))
      value = at::ones_like(j);
    else if (name.ends_with("running_mean"))
      value = at::zeros_like(j);
    else if (name.find(".norm") != std::string::npos && name.ends_with("weight"))
      value = 1 + 0.1 * at::sin(0.7 * j + row);
    else if (backbone)
      value = 0.05 * at::sin(0.7 * j + row);
    tensor.copy_(value.view(tensor.sizes()));
  }
  return policy;
}

policies::Batch batch() {
  const auto g = [](std::int64_t count, double o, at::IntArrayRef shape) {
    return at::sin(0.3 * at::arange(count, at::kDouble) + o).to(at::kFloat).view(shape);
  };
  policies::Batch b;
  b.tensors["observation.state"] = g(8, 1, {2, 4});
  b.tensors["observation.environment_state"] = g(6, 2, {2, 3});
  b.tensors["observation.images.top"] =
      (0.5 * at::sin(0.3 * at::arange(2 * 3 * 32 * 64, at::kDouble) + 3.0) + 0.5).to(at::kFloat).view({2, 3, 32, 64});
  b.tensors["action"] = g(20, 4, {2, 5, 2});
  b.tensors["action_is_pad"] = at::zeros({2, 5}, at::kBool);
  b.tensors["action_is_pad"][1].narrow(0, 3, 2).fill_(true);
  return b;
}

double norm_of(const ACTPolicy& policy, const std::string& name) {
  return policy->named_parameters()[name].grad().norm().item<double>();
}

}  // namespace

TEST_CASE("ACT fixture: chunk, losses and gradients, post-norm and pre-norm", "[act_fixture]") {
  struct Want {
    bool pre_norm;
    std::size_t names;
    std::int64_t numel;
    std::vector<double> chunk;
    double sum, eval_loss, loss, l1, kld, norm;
  };
  const std::vector<Want> wants{
      {false,
       176,
       11185834,
       {0.539527, 1.414885, 0.475895, 1.451323, 0.449526, 1.381225, 0.441808, 1.439482, 0.465938, 1.429418},
       18.978378,
       1.097052,
       87.859810,
       1.098864,
       8.676095,
       435.66739},
      {true,
       180,
       11185898,
       {0.416954, 1.432471, 0.552803, 1.634266, 0.192321, 1.195775, 0.294512, 1.406743, 0.390286, 1.417693},
       14.581096,
       1.156503,
       34.736050,
       1.121577,
       3.361447,
       129.06458}};
  for (const Want& want : wants) {
    INFO((want.pre_norm ? "pre-norm" : "post-norm"));
    ACTPolicy policy = build(config(want.pre_norm));
    CHECK(golden::state(*policy).size() == want.names);
    std::int64_t numel = 0;
    for (const auto& p : policy->parameters()) numel += p.numel();
    CHECK(numel == want.numel);
    if (!want.pre_norm) {
      const at::Tensor first = policy->named_parameters()["model.encoder.layers.0.self_attn.in_proj_weight"];
      CHECK(first[0][0].item<float>() == Approx(0.0212334F));
      CHECK(first[0][1].item<float>() == Approx(0.2032852F));
    }
    const at::Tensor chunk = policy->predict_action_chunk(batch());
    const at::Tensor flat = chunk[0].flatten();
    for (std::size_t i = 0; i < want.chunk.size(); ++i)
      CHECK(flat[static_cast<std::int64_t>(i)].item<double>() == Approx(want.chunk[i]).epsilon(1e-4));
    CHECK(chunk.sum().item<double>() == Approx(want.sum).epsilon(1e-4));
    policy->eval();
    const auto eval = policy->forward(batch());
    CHECK(eval.loss.item<double>() == Approx(want.eval_loss).epsilon(1e-4));
    CHECK(eval.outputs.size() == 1);
    CHECK(eval.weight.item<double>() == 16.0);

    policy->train();
    at::manual_seed(0);
    const auto out = policy->forward(batch());
    CHECK(out.loss.item<double>() == Approx(want.loss).epsilon(1e-4));
    CHECK(out.outputs.at(0).second.item<double>() == Approx(want.l1).epsilon(1e-4));
    CHECK(out.outputs.at(1).second.item<double>() == Approx(want.kld).epsilon(1e-4));
    out.loss.backward();
    double squares = 0;
    for (const auto& p : policy->parameters()) squares += p.grad().to(at::kDouble).square().sum().item<double>();
    CHECK(std::sqrt(squares) == Approx(want.norm).epsilon(1e-4));
    if (!want.pre_norm) {
      CHECK(norm_of(policy, "model.action_head.weight") == Approx(2.137751).epsilon(1e-4));
      CHECK(norm_of(policy, "model.encoder.layers.0.self_attn.in_proj_weight") == Approx(0.795485).epsilon(1e-4));
      CHECK(norm_of(policy, "model.backbone.conv1.weight") == Approx(0.00196865).epsilon(1e-3));
      CHECK(norm_of(policy, "model.vae_encoder_cls_embed.weight") == Approx(84.161471).epsilon(1e-4));
    }
  }
}

TEST_CASE("ACT fixture: without the VAE", "[act_fixture]") {
  ACTPolicy policy = build(config(false, false));
  CHECK(golden::state(*policy).size() == 156);
  // The names are others, and so are the weights that the formula gives: the recorded loss needs those of the full set.
  ACTPolicy full = build(config(false));
  const torch::NoGradGuard no_grad;
  const auto weights = golden::state(*full);
  for (auto& [name, tensor] : golden::state(*policy)) tensor.copy_(weights.at(name));
  policy->train();
  CHECK(policy->forward(batch()).loss.item<double>() == Approx(1.097052).epsilon(1e-4));
}

TEST_CASE("ACT: default sizes have the names, shapes and order of LeRobot (Python)", "[act_fixture]") {
  for (const std::string name : {"act_default_state", "act_default_image"}) {
    INFO(name);
    const auto folder = golden::fs::path(LEROBOT_TEST_DATA) / "act_default" / name;
    const golden::Json want = golden::json(folder / "names_shapes.json");
    const ACTPolicy policy(ACTConfig::from_json(golden::json(folder / "config.json")));
    std::size_t i = 0;
    for (const auto& p : policy->named_parameters()) {
      REQUIRE(i < want["parameters"].size());
      const golden::Json& entry = want["parameters"][i++];
      CHECK(p.key() == entry["name"].get<std::string>());
      CHECK(p.value().sizes().vec() == entry["shape"].get<std::vector<std::int64_t>>());
    }
    CHECK(i == want["parameters"].size());
    std::map<std::string, std::vector<std::int64_t>> buffers;
    for (const auto& b : policy->named_buffers()) buffers.emplace(b.key(), b.value().sizes().vec());
    CHECK(buffers.size() == want["buffers"].size());
    for (const golden::Json& entry : want["buffers"])
      CHECK(buffers.at(entry["name"].get<std::string>()) == entry["shape"].get<std::vector<std::int64_t>>());
  }
}

TEST_CASE("ACT: dropout changes training alone, and the gradient of every parameter is there", "[act_fixture]") {
  for (const double p : {0.0, 0.1}) {
    for (const bool pre_norm : {false, true}) {
      INFO("dropout " << p << ", pre-norm " << pre_norm);
      ACTConfig c = config(pre_norm);
      c.dropout = p;
      c.n_decoder_layers = 2;
      c.n_vae_encoder_layers = 2;
      ACTPolicy policy = build(c);
      policy->train();
      at::manual_seed(1);
      const auto first = policy->forward(batch());
      at::manual_seed(1);
      CHECK(policy->forward(batch()).loss.item<double>() == first.loss.item<double>());
      CHECK((policy->forward(batch()).outputs[0].second.item<double>() != first.outputs[0].second.item<double>()));
      first.loss.backward();
      for (const auto& parameter : policy->named_parameters()) {
        INFO(parameter.key());
        CHECK(parameter.value().grad().defined());
      }
      CHECK(at::equal(policy->predict_action_chunk(batch()), policy->predict_action_chunk(batch())));
    }
  }
}

TEST_CASE("ACT: glu is built and fails in its first forward, a missing input is named", "[act_fixture]") {
  ACTConfig c = config(false);
  c.feedforward_activation = nn::Activation::kGlu;
  ACTPolicy glu(c);
  CHECK_THROWS(glu->forward(batch()));
  ACTPolicy policy(config(false));
  policies::Batch without = batch();
  without.tensors.erase("observation.images.top");
  CHECK_THROWS_WITH(policy->forward(without), Catch::Contains("observation.images.top"));
  without = batch();
  without.tensors.erase("action_is_pad");
  CHECK_THROWS_WITH(policy->forward(without), Catch::Contains("action_is_pad"));
}
