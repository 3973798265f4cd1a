#include "lerobot/policies/act_policy.hpp"

#include <catch2/catch.hpp>

#include "unit/policies/golden.hpp"

namespace {

using namespace lerobot;
using golden::folder;

const std::vector<std::string> kStateCases{"state_dec1", "state_dec2", "state_prenorm_gelu", "state_novae",
                                           "state_defaultlr"};
const std::vector<std::string> kAllCases{"state_dec1",      "state_dec2", "state_prenorm_gelu", "state_novae",
                                         "state_defaultlr", "image_dec1", "image_dec2"};

double item(const policies::PolicyOutput& output, std::string_view name) {
  for (const auto& [key, value] : output.outputs)
    if (key == name) return value.item<double>();
  return std::numeric_limits<double>::quiet_NaN();
}

/// Replays the recorded noise, one entry of the first dimension per call.
nn::NoiseSource replay(const at::Tensor& noise) {
  return [noise, step = std::int64_t{0}](at::IntArrayRef shape, const at::TensorOptions& options) mutable {
    const at::Tensor drawn = noise.select(0, step++).to(options);
    REQUIRE(drawn.sizes() == shape);
    return drawn;
  };
}

/// AdamW as the recordings used it: torch's own, with the policy's groups, after clipping to norm 10.
struct Trainer {
  explicit Trainer(policies::ACTPolicy& p) : policy(p) {
    std::map<std::string, at::Tensor> parameters;
    for (const auto& parameter : policy->named_parameters()) parameters.emplace(parameter.key(), parameter.value());
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const auto& group : policy->optim_groups()) {
      std::vector<at::Tensor> members;
      for (const auto& name : group.names) members.push_back(parameters.at(name));
      auto options = std::make_unique<torch::optim::AdamWOptions>(group.lr.value_or(policy->config().optimizer_lr));
      options->weight_decay(policy->config().optimizer_weight_decay);
      if (!members.empty()) groups.emplace_back(std::move(members), std::move(options));
    }
    optimizer = std::make_unique<torch::optim::AdamW>(groups, torch::optim::AdamWOptions());
  }
  double step(const policies::PolicyOutput& output) {
    optimizer->zero_grad();
    output.loss.backward();
    const double norm = torch::nn::utils::clip_grad_norm_(policy->parameters(), 10.0);
    optimizer->step();
    return norm;
  }
  policies::ACTPolicy& policy;
  std::unique_ptr<torch::optim::AdamW> optimizer;
};

}  // namespace

TEST_CASE("ACTPolicy: the first training forward and its gradients are those of LeRobot (Python)", "[act_policy]") {
  for (const std::string& name : kAllCases) {
    INFO(name);
    policies::ACTPolicy policy = golden::policy(name);
    policy->train();
    const auto expected = golden::tensors(folder(name) / "forward_train.safetensors");
    const auto noise = golden::tensors(folder(name) / "vae_noise.safetensors").at("vae_noise");
    const auto batch = golden::batch(folder(name) / "batch_normalized.safetensors");
    policy->set_noise_source(replay(noise));
    const policies::ACTOutput out = policy->model()(batch);
    CHECK(golden::distance(out.actions_BCA, expected.at("actions_hat")) < 1e-5);
    if (expected.contains("mu")) {
      CHECK(golden::distance(out.latent_B2Z.narrow(1, 0, 8), expected.at("mu")) < 1e-5);
      CHECK(golden::distance(out.latent_B2Z.narrow(1, 8, 8), expected.at("log_sigma_x2")) < 1e-5);
    } else {
      CHECK_FALSE(out.latent_B2Z.defined());
    }

    policy->set_noise_source(replay(noise));
    const policies::PolicyOutput loss = policy->forward(batch);
    CHECK(loss.loss.item<double>() == Approx(expected.at("loss").item<double>()).epsilon(1e-5));
    CHECK(item(loss, "l1_loss") == Approx(expected.at("l1_loss").item<double>()).epsilon(1e-5));
    if (expected.contains("kld_loss"))
      CHECK(item(loss, "kld_loss") == Approx(expected.at("kld_loss").item<double>()).epsilon(1e-5));
    else
      CHECK(loss.outputs.size() == 1);
    const auto valid = batch.tensors.at("action_is_pad").logical_not().sum().item<double>();
    CHECK(loss.weight.item<double>() == valid * 2);

    loss.loss.backward();
    const auto gradients = golden::tensors(folder(name) / "grads_step1_before_clip.safetensors");
    std::size_t compared = 0;
    for (const auto& parameter : policy->named_parameters()) {
      INFO(parameter.key());
      REQUIRE(parameter.value().grad().defined());
      if (parameter.key().find("backbone") != std::string::npos) continue;
      const at::Tensor& wanted = gradients.at(parameter.key());
      const double largest = wanted.abs().max().item<double>();
      // Gradients that are zero in exact arithmetic hold rounding only.
      CHECK(golden::distance(parameter.value().grad(), wanted) <= 1e-4 * largest + 1e-7);
      ++compared;
    }
    CHECK(compared == gradients.size());
  }
}

TEST_CASE("ACTPolicy: gradients of the backbone are those of LeRobot (Python)", "[act_policy]") {
  const golden::Json recorded = golden::json(folder("image_dec1") / "grads_step1_backbone.json");
  policies::ACTPolicy policy = golden::policy("image_dec1");
  policy->train();
  policy->set_noise_source(replay(golden::tensors(folder("image_dec1") / "vae_noise.safetensors").at("vae_noise")));
  policy->forward(golden::batch(folder("image_dec1") / "batch_normalized.safetensors")).loss.backward();
  std::size_t compared = 0;
  for (const auto& parameter : policy->named_parameters()) {
    if (!recorded.contains(parameter.key())) continue;
    INFO(parameter.key());
    const golden::Json& want = recorded[parameter.key()];
    const at::Tensor gradient = parameter.value().grad().to(at::kDouble).flatten();
    CHECK(gradient.norm().item<double>() == Approx(want["l2"].get<double>()).epsilon(1e-3));
    CHECK(gradient.abs().sum().item<double>() == Approx(want["abs_sum"].get<double>()).epsilon(1e-3));
    ++compared;
  }
  CHECK(compared == 20);
}

TEST_CASE("ACTPolicy: losses and parameters follow LeRobot (Python) over five updates", "[act_policy]") {
  for (const std::string& name : kAllCases) {
    INFO(name);
    const bool images = name.starts_with("image");
    policies::ACTPolicy policy = golden::policy(name);
    policy->train();
    const golden::Json recorded = golden::json(folder(name) / "golden.json");
    const auto batch = golden::batch(folder(name) / "batch_normalized.safetensors");
    policy->set_noise_source(replay(golden::tensors(folder(name) / "vae_noise.safetensors").at("vae_noise")));

    std::vector<std::vector<std::string>> order;
    for (const auto& group : policy->optim_groups()) order.push_back(group.names);
    CHECK(order == recorded["param_order"].get<std::vector<std::vector<std::string>>>());

    Trainer trainer(policy);
    const double lr = policy->config().optimizer_lr;
    for (std::size_t step = 0; step < 5; ++step) {
      INFO("step " << step + 1);
      const policies::PolicyOutput output = policy->forward(batch);
      const double norm = trainer.step(output);
      const golden::Json& want = recorded["steps"][step];
      const double tolerance = step < 2 ? 1e-5 : images ? 1e-1 : 1e-3;
      CHECK(output.loss.item<double>() == Approx(want["loss"].get<double>()).epsilon(tolerance));
      if (step == 0) CHECK(norm == Approx(want["grad_norm_before_clip"].get<double>()).epsilon(1e-4));

      const std::string after = "params_after_" + std::to_string(step + 1) + ".safetensors";
      if (!golden::fs::exists(folder(name) / after)) continue;
      const auto expected = golden::tensors(folder(name) / after);
      for (const auto& parameter : policy->named_parameters()) {
        if (!expected.contains(parameter.key())) continue;
        INFO(parameter.key());
        const at::Tensor difference = (parameter.value().detach() - expected.at(parameter.key())).abs();
        // AdamW turns rounding in near-zero gradients into steps of up to lr.
        const double bound = lr * static_cast<double>(step + 1) * (images ? 2.0 : 1.0);
        CHECK(difference.max().item<double>() <= bound);
        const bool all_rounding = parameter.key().find("decoder.layers.0.self_attn.in_proj") != std::string::npos ||
                                  parameter.key().ends_with("in_proj_bias");
        if (!images && !all_rounding)
          CHECK((difference > 1e-4).sum().item<double>() <= 0.01 * static_cast<double>(difference.numel()));
      }
    }
  }
}

TEST_CASE("ACTPolicy: chunks, queues and ensembles are those of LeRobot (Python)", "[act_policy]") {
  for (const std::string& name : kAllCases) {
    INFO(name);
    const auto eval = golden::tensors(folder(name) / "eval.safetensors");
    // Observations are normalised with the stored statistics here, so that this test depends on the policy alone.
    policies::Batch all;
    const auto stats = golden::tensors(folder(name) / "policy_preprocessor_step_3_normalizer_processor.safetensors");
    for (const auto& [key, tensor] : eval) {
      if (!key.starts_with("obs.")) continue;
      const std::string feature = key.substr(4);
      at::Tensor x = tensor.scalar_type() == at::kByte ? tensor.to(at::kFloat) / 255 : tensor;
      const bool normalised = feature == "observation.state" || feature == "observation.image";
      if (normalised) x = (x - stats.at(feature + ".mean")) / (stats.at(feature + ".std") + 1e-8);
      all.tensors[feature] = x;
    }
    policies::ACTPolicy chunked = golden::policy(name);
    CHECK(golden::distance(chunked->predict_action_chunk(all), eval.at("predict_action_chunk")) < 1e-5);

    const auto run = [&](const golden::Json& overrides, const std::string& expected) {
      INFO(expected);
      policies::ACTPolicy policy = golden::policy(name, overrides);
      policy->reset();
      for (std::int64_t t = 0; t < 12; ++t) {
        policies::Batch one;
        for (const auto& [key, tensor] : all.tensors) one.tensors[key] = tensor.narrow(0, t, 1);
        CHECK(golden::distance(policy->select_action(one)[0], eval.at(expected)[t]) < 1e-5);
      }
    };
    run({{"n_action_steps", 10}}, "select_action.queue");
    run({{"n_action_steps", 4}}, "select_action.queue4");
    run({{"n_action_steps", 1}, {"temporal_ensemble_coeff", 0.01}}, "select_action.ensemble");
    run({{"n_action_steps", 1}, {"temporal_ensemble_coeff", -0.2}}, "select_action.ensemble_neg");
  }
}

TEST_CASE("ACTPolicy: the first update's forward draws what torch draws when no noise source is set", "[act_policy]") {
  policies::ACTPolicy policy = golden::policy("state_dec1");
  policy->train();
  const auto batch = golden::batch(folder("state_dec1") / "batch_normalized.safetensors");
  at::manual_seed(5);
  const at::Tensor noise = at::randn({1, 4, 8});
  at::manual_seed(5);
  const double own = policy->forward(batch).loss.item<double>();
  policy->set_noise_source(replay(noise));
  CHECK(own == policy->forward(batch).loss.item<double>());
}

TEST_CASE("ACTPolicy: a seed gives the initial weights that it gives in LeRobot (Python)", "[act_policy]") {
  const golden::fs::path run = golden::fs::path(LEROBOT_TEST_DATA) / "checkpoints" / "single";
  const auto expected = golden::tensors(run / "expected" / "before_first_update.safetensors");
  at::manual_seed(1000);
  policies::ACTPolicy policy(policies::ACTConfig::from_json(
      golden::json(run / "run" / "checkpoints" / "000003" / "pretrained_model" / "config.json")));
  std::size_t compared = 0;
  for (const auto& parameter : policy->named_parameters()) {
    INFO(parameter.key());
    CHECK(at::equal(parameter.value(), expected.at("model." + parameter.key())));
    ++compared;
  }
  CHECK(compared > 50);
}
