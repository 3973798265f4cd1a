#include "lerobot/policies/act_config.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"
#include "lerobot/policies/temporal_ensembler.hpp"
#include "unit/policies/golden.hpp"

namespace {

using namespace lerobot;
using policies::ACTConfig;

Json valid() { return golden::json(golden::folder("state_dec1") / "config.json"); }

std::string refusal(const char* key, const Json& value) {
  Json config = valid();
  config[key] = value;
  try {
    (void)ACTConfig::from_json(config);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kConfig);
    return e.what();
  }
  return "(taken)";
}

}  // namespace

TEST_CASE("ACTConfig: reads what LeRobot (Python) wrote", "[act_config]") {
  const ACTConfig config = ACTConfig::from_json(valid());
  CHECK(config.dim_model == 64);
  CHECK(config.dropout == 0.0);
  CHECK(config.state_feature()->shape == std::vector<std::int64_t>{2});
  CHECK(config.env_feature()->shape == std::vector<std::int64_t>{16});
  CHECK(config.image_features().empty());
  CHECK(config.action_feature().shape == std::vector<std::int64_t>{2});
  CHECK_FALSE(config.pretrained_backbone_weights);
  CHECK_FALSE(config.temporal_ensemble_coeff);
}

TEST_CASE("ACTConfig: settings that cannot work are refused by name", "[act_config]") {
  CHECK_THAT(refusal("n_obs_steps", 2), Catch::Contains("n_obs_steps"));
  CHECK_THAT(refusal("n_action_steps", 11), Catch::Contains("n_action_steps") && Catch::Contains("chunk_size=10"));
  CHECK_THAT(refusal("vision_backbone", "vgg16"), Catch::Contains("vgg16"));
  CHECK_THAT(refusal("feedforward_activation", "silu"), Catch::Contains("silu") && Catch::Contains("glu"));
  CHECK_THAT(refusal("temporal_ensemble_coeff", 0.01), Catch::Contains("temporal_ensemble_coeff"));
  CHECK_THAT(refusal("n_heads", 5), Catch::Contains("n_heads=5"));
  CHECK_THAT(refusal("dim_model", "64"), Catch::Contains("dim_model") && Catch::Contains("integer"));
  CHECK_THAT(refusal("dim_modell", 64), Catch::Contains("dim_modell"));
  CHECK_THAT(refusal("input_features", Json::object()), Catch::Contains("at least one image"));
  CHECK_THAT(refusal("output_features", Json::object()), Catch::Contains("action"));
  CHECK_THAT(refusal("replace_final_stride_with_dilation", 0), Catch::Contains("(taken)"));
}

TEST_CASE("TemporalEnsembler: the example of the specification", "[act_config]") {
  policies::TemporalEnsembler ensembler(0.01, 3);
  const at::Tensor chunk = torch::tensor({1.0F, 2.0F, 3.0F}).view({1, 3, 1});
  const std::vector<double> expected{1.0, 2.0, 3.333322, 5.339989};
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(ensembler.update(chunk * static_cast<double>(k + 1)).item<double>() == Approx(expected[k]).epsilon(1e-6));
  ensembler.reset();
  CHECK(ensembler.update(chunk * 7).item<double>() == 7.0);
}
