// A policy of your own, trained with every flag of lerobot-train. Nothing in the library changes for it.
//
//   mpirun -n 2 build/release/bin/examples/custom_policy --policy.type=mlp --policy.hidden_dim=32 --policy.device=cpu
//     --policy.push_to_hub=false --dataset.repo_id=lerobot/pusht_mini_state
//     --dataset.root=tests/data/datasets/pusht_mini_state --steps=20 --log_freq=10 --output_dir=/tmp/mlp
//
// The last line says: End of training
#include <torch/torch.h>

#include "lerobot/nn/hooked.hpp"
#include "lerobot/nn/layers.hpp"
#include "lerobot/policies/policy.hpp"
#include "lerobot/policies/registry.hpp"
#include "lerobot/train/run_app.hpp"

namespace {

using lerobot::Field;
using lerobot::FieldType;
using lerobot::Json;
using lerobot::policies::Batch;

// B batch, T chunk, A action, S state.
class MLPPolicyImpl : public lerobot::policies::Policy {
 public:
  explicit MLPPolicyImpl(const Json& config)
      : chunk_(config.at("chunk_size").get<std::int64_t>()),
        action_(config.at("output_features").at("action").at("shape").at(0).get<std::int64_t>()) {
    const auto state = config.at("input_features").at("observation.state").at("shape").at(0).get<std::int64_t>();
    const auto hidden = config.at("hidden_dim").get<std::int64_t>();
    in_ = register_module("in", lerobot::nn::Linear(state, hidden));
    out_ = register_module("out", lerobot::nn::Linear(hidden, chunk_ * action_));
  }

  lerobot::policies::PolicyOutput forward(const Batch& batch) override {
    const at::Tensor valid_BT1 = (~batch.tensors.at("action_is_pad")).unsqueeze(-1).to(torch::kFloat);
    const at::Tensor weight = (valid_BT1.sum() * action_).clamp_min(1);
    const at::Tensor loss = ((predict(batch) - batch.tensors.at("action")).square() * valid_BT1).sum() / weight;
    return {.loss = loss, .weight = weight, .outputs = {{"mse_loss", loss.detach()}}};
  }

  at::Tensor predict_action_chunk(const Batch& batch) override {
    torch::NoGradGuard no_grad;
    return predict(batch);
  }
  at::Tensor select_action(const Batch& batch) override { return predict_action_chunk(batch).select(1, 0); }
  void reset() override {}
  void set_noise_source(lerobot::nn::NoiseSource /*source*/) override {}  // this policy draws no numbers
  std::vector<lerobot::policies::ParamGroup> optim_groups() const override {
    lerobot::policies::ParamGroup all;
    for (const auto& entry : named_parameters())
      if (entry.value().requires_grad()) all.names.push_back(entry.key());
    return {all};
  }

 private:
  at::Tensor predict(const Batch& batch) {
    return out_(torch::relu(in_(batch.tensors.at("observation.state")))).reshape({-1, chunk_, action_});
  }

  std::int64_t chunk_, action_;
  lerobot::nn::Linear in_{nullptr}, out_{nullptr};
};
LEROBOT_MODULE(MLPPolicy);

lerobot::policies::PolicyType mlp_type() {
  return {
      .name = "mlp",
      .class_name = "MLPPolicy",
      .fields = {{"chunk_size", FieldType::kInt, 10, false, -1, "actions predicted at once"},
                 {"hidden_dim", FieldType::kInt, 64, false, -1, "width of the hidden layer"},
                 {"optimizer_lr", FieldType::kFloat, 1e-3, false, -1, "learning rate"}},
      .validate = [](const Json&) {},
      .make = [](const Json& config) { return MLPPolicy(config).ptr(); },
      .wrap_modules = {"Linear"},
      .optimizer_preset =
          [](const Json& config) {
            return Json{{"type", "adamw"}, {"lr", config.at("optimizer_lr")}};
          },
      .scheduler_preset = [](const Json&) { return Json(nullptr); },
      .action_delta_indices =
          [](const Json& config) {
            std::vector<std::int64_t> deltas(config.at("chunk_size").get<std::size_t>());
            for (std::size_t i = 0; i < deltas.size(); ++i) deltas[i] = static_cast<std::int64_t>(i);
            return deltas;
          },
      .observation_delta_indices = [](const Json&) { return std::vector<std::int64_t>{}; },
  };
}

}  // namespace

int main(int argc, char** argv) {
  lerobot::policies::Registry registry = lerobot::policies::built_in_policies();
  registry.add(mlp_type());
  return lerobot::train::run_app(argc, argv, registry);
}
