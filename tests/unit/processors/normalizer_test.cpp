#include "lerobot/processors/normalizer.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"

namespace {

using namespace lerobot;
using namespace lerobot::processors;
using Direction = Normalizer::Direction;

NormalizerOptions options_with(NormalizationMode mode, Stats stats, FeatureType type = FeatureType::kAction,
                               const std::string& name = "action", std::vector<std::int64_t> shape = {2}) {
  return {.features = {{name, type, std::move(shape)}}, .norm_map = {{type, mode}}, .stats = std::move(stats)};
}

Stats spec_stats() {
  const auto pair = [](double a, double b) { return torch::tensor({a, b}, at::kFloat); };
  return {{"action",
           {{"mean", pair(1, 2)},
            {"std", pair(2, 0)},
            {"min", pair(0, 5)},
            {"max", pair(4, 5)},
            {"q01", pair(.5, 5)},
            {"q99", pair(3.5, 5)},
            {"q10", pair(1, 5)},
            {"q90", pair(3, 5)}}}};
}

}  // namespace

TEST_CASE("Normalizer: the five modes and their inverses", "[normalizer]") {
  struct Row {
    NormalizationMode mode;
    float first, second, back_first, back_second;
  };
  for (const Row& row : {Row{NormalizationMode::kMeanStd, 1.0F, 3e8F, 3.0F, 2.0F},
                         Row{NormalizationMode::kMinMax, 0.5F, -1.0F, 3.0F, 5.0F},
                         Row{NormalizationMode::kQuantiles, 0.6666667F, -1.0F, 3.0F, 5.0F},
                         Row{NormalizationMode::kQuantile10, 1.0F, -1.0F, 3.0F, 5.0F},
                         Row{NormalizationMode::kIdentity, 3.0F, 5.0F, 3.0F, 5.0F}}) {
    INFO(to_string(row.mode));
    Normalizer forward(Direction::kNormalize, options_with(row.mode, spec_stats()));
    Normalizer inverse(Direction::kUnnormalize, options_with(row.mode, spec_stats()));
    const at::Tensor y = forward.apply("action", torch::tensor({3.0F, 5.0F}));
    CHECK(y[0].item<float>() == Approx(row.first));
    CHECK(y[1].item<float>() == Approx(row.second));
    const at::Tensor x = inverse.apply("action", y);
    CHECK(x[0].item<float>() == Approx(row.back_first));
    CHECK(x[1].item<float>() == Approx(row.back_second));
  }
}

TEST_CASE("Normalizer: a constant dimension stays finite and comes back exactly (D10)", "[normalizer]") {
  const Stats stats{{"action",
                     {{"mean", torch::tensor({0.5F, 2.0F})},
                      {"std", torch::tensor({1.5F, 0.0F})},
                      {"min", torch::tensor({-1.0F, 2.0F})},
                      {"max", torch::tensor({3.0F, 2.0F})}}}};
  const at::Tensor action = torch::tensor({{0.3F, 2.0F}, {1.7F, 2.0F}});
  for (const auto& [mode, expected] :
       {std::pair{NormalizationMode::kMeanStd, 0.0F}, {NormalizationMode::kMinMax, -1.0F}}) {
    INFO(to_string(mode));
    Normalizer forward(Direction::kNormalize, options_with(mode, stats));
    Normalizer inverse(Direction::kUnnormalize, options_with(mode, stats));
    const at::Tensor y = forward.apply("action", action);
    CHECK(at::equal(y.select(1, 1), at::full({2}, expected)));
    CHECK(at::isfinite(y).all().item<bool>());
    CHECK(at::equal(inverse.apply("action", y).select(1, 1), at::full({2}, 2.0F)));
  }
}

TEST_CASE("Normalizer: identity leaves a white picture at 1.0 (D11)", "[normalizer]") {
  Normalizer forward(
      Direction::kNormalize,
      options_with(NormalizationMode::kIdentity,
                   {{"observation.image", {{"mean", at::full({3, 1, 1}, 0.5)}, {"std", at::ones({3, 1, 1})}}}},
                   FeatureType::kVisual, "observation.image", {3, 4, 4}));
  Batch batch;
  batch.tensors["observation.image"] = at::full({2, 3, 4, 4}, 255, at::kByte).to(at::kFloat) / 255;
  forward.apply(batch);
  CHECK(at::equal(batch.tensors.at("observation.image"), at::ones({2, 3, 4, 4})));
}

TEST_CASE("Normalizer: only listed features with statistics are touched, padding never", "[normalizer]") {
  NormalizerOptions options = options_with(NormalizationMode::kMeanStd, spec_stats());
  options.features.push_back({"observation.state", FeatureType::kState, {2}});
  options.stats["unlisted"] = {{"mean", at::ones({2})}, {"std", at::ones({2})}};
  Normalizer forward(Direction::kNormalize, options);
  Batch batch;
  const at::Tensor ones = at::ones({1, 2});
  batch.tensors = {{"action", ones}, {"observation.state", ones}, {"unlisted", ones}, {"action_is_pad", ones}};
  forward.apply(batch);
  CHECK_FALSE(at::equal(batch.tensors.at("action"), ones));
  for (const char* name : {"observation.state", "unlisted", "action_is_pad"})
    CHECK(at::equal(batch.tensors.at(name), ones));
  CHECK(at::equal(ones, at::ones({1, 2})));  // the caller's tensor is not written
}

TEST_CASE("Normalizer: statistics without the needed pair are refused, naming both", "[normalizer]") {
  const auto make = [] {
    Normalizer(Direction::kNormalize,
               options_with(NormalizationMode::kQuantiles, {{"action", {{"q01", at::ones({2})}}}}));
  };
  CHECK_THROWS_WITH(make(), Catch::Contains("QUANTILES") && Catch::Contains("q01") && Catch::Contains("q99") &&
                                Catch::Contains("\"action\""));
}

TEST_CASE("Normalizer: one-dimensional statistics of images are per channel", "[normalizer]") {
  Normalizer forward(
      Direction::kNormalize,
      options_with(NormalizationMode::kMeanStd,
                   {{"observation.image",
                     {{"mean", torch::tensor({1.0F, 2.0F, 3.0F})}, {"std", at::ones({3})}, {"count", at::ones({1})}}}},
                   FeatureType::kVisual, "observation.image", {3, 2, 2}));
  const at::Tensor y = forward.apply("observation.image", at::zeros({1, 3, 2, 2}));
  CHECK(y[0][2][1][1].item<float>() == Approx(-3.0F));
  CHECK(forward.state().at("observation.image.count").sizes() == at::IntArrayRef{1, 1, 1});
}

TEST_CASE("Normalizer: doubles stay doubles, integers become float32", "[normalizer]") {
  Normalizer forward(Direction::kNormalize, options_with(NormalizationMode::kMeanStd, spec_stats()));
  CHECK(forward.apply("action", at::ones({2}, at::kDouble)).scalar_type() == at::kDouble);
  CHECK(forward.apply("action", at::ones({2}, at::kLong)).scalar_type() == at::kFloat);
}
