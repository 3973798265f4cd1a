// The smallest training loop: dataset, policy, optimizer, one process.
//
//   build/release/bin/examples/single tests/data/datasets/pusht_mini_state
//
// It prints the loss every ten steps; the last line says: step 40 loss <a number below that of step 10>
#include <torch/torch.h>

#include <cstdio>

#include "lerobot/data/data.hpp"
#include "lerobot/optim/optim.hpp"
#include "lerobot/policies/act_config.hpp"
#include "lerobot/policies/act_policy.hpp"
#include "lerobot/processors/processors.hpp"

using namespace lerobot;

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: single DATASET\n"), 2;
  torch::manual_seed(1000);
  log::Logger logger;

  // A sample holds ten actions; the policy is a small ACT.
  const auto metadata = std::make_shared<data::Metadata>(data::read_metadata(argv[1], logger));
  data::DatasetOptions options;
  options.delta_timestamps = data::delta_timestamps(
      metadata->info, {.observation = {}, .action = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, .reward = {}});
  const auto dataset = std::make_shared<data::Dataset>(metadata, options, logger);
  const data::PolicyFeatures features = data::policy_features(metadata->info);
  const Json settings{{"input_features", features.inputs},
                      {"output_features", features.outputs},
                      {"chunk_size", 10},
                      {"n_action_steps", 10},
                      {"dim_model", 64},
                      {"n_heads", 4},
                      {"dim_feedforward", 128},
                      {"n_encoder_layers", 2},
                      {"n_vae_encoder_layers", 2},
                      {"pretrained_backbone_weights", nullptr}};
  const policies::ACTConfig config = policies::ACTConfig::from_json(settings);
  policies::ACTPolicy policy(config);
  const processors::Pipeline prepare = processors::make_pre_processor(
      {.input_features = processors::parse_features(features.inputs, "inputs"),
       .output_features = processors::parse_features(features.outputs, "outputs"),
       .norm_map = {{processors::FeatureType::kState, processors::NormalizationMode::kMeanStd},
                    {processors::FeatureType::kAction, processors::NormalizationMode::kMeanStd}},
       .stats = metadata->stats,
       .rename_map = {}});

  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& entry : policy->named_parameters()) parameters.emplace_back(entry.key(), entry.value());
  optim::GroupOptions rates;
  rates.lr = 1e-3;
  optim::Optimizer optimizer(optim::OptimizerKind::kAdamW, {optim::make_group(rates, parameters)});
  data::Loader loader(dataset, data::make_sampler(*dataset, {}, logger), {.batch_size = 8, .num_workers = 1}, logger);

  for (int step = 1; step <= 40; ++step) {
    data::Batch raw = loader.next();
    const policies::PolicyOutput output = policy(prepare({std::move(raw.tensors), std::move(raw.task)}));
    output.loss.backward();
    optim::clip_grad_norm(optimizer.gradients(), 10.0);
    optimizer.step();
    optimizer.zero_grad();
    if (step % 10 == 0) std::printf("step %d loss %.3f\n", step, output.loss.item<double>());
  }
  return 0;
}
