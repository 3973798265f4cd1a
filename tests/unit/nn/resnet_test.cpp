#include "lerobot/nn/resnet.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"
#include "lerobot/nn/sinusoid.hpp"

using namespace lerobot::nn;

TEST_CASE("ResNetBackbone: names, shapes and counts are torchvision's", "[resnet]") {
  ResNetBackbone small("resnet18", false);
  const auto parameters = small->named_parameters();
  CHECK(parameters.size() == 20);
  CHECK(small->named_buffers().size() == 80);
  CHECK(parameters["conv1.weight"].sizes() == at::IntArrayRef{64, 3, 7, 7});
  CHECK(parameters["layer2.0.downsample.0.weight"].sizes() == at::IntArrayRef{128, 64, 1, 1});
  CHECK(parameters["layer4.1.conv2.weight"].sizes() == at::IntArrayRef{512, 512, 3, 3});
  CHECK(small->named_buffers().contains("layer4.0.downsample.1.running_var"));
  const torch::NoGradGuard no_grad;
  CHECK(small(at::zeros({1, 3, 96, 65})).sizes() == at::IntArrayRef{1, 512, 3, 3});
  CHECK(small->out_channels() == 512);

  ResNetBackbone dilated("resnet50", true);
  CHECK(dilated->out_channels() == 2048);
  CHECK(dilated->named_parameters()["layer3.5.conv3.weight"].sizes() == at::IntArrayRef{1024, 256, 1, 1});
  CHECK(dilated(at::zeros({1, 3, 64, 64})).sizes() == at::IntArrayRef{1, 2048, 4, 4});
  std::int64_t numel = 0;
  for (const auto& p : dilated->parameters()) numel += p.numel();
  CHECK(numel == 23454912);  // torchvision's 25,557,032 without fc and the norms' 53,120
}

TEST_CASE("ResNetBackbone: unknown networks and dilated small ones are refused", "[resnet]") {
  CHECK_THROWS_WITH(ResNetBackbone("resnet19", false), Catch::Contains("resnet19") && Catch::Contains("resnet50"));
  CHECK_THROWS_WITH(ResNetBackbone("resnet18", true), Catch::Contains("replace_final_stride_with_dilation"));
}

TEST_CASE("FrozenBatchNorm2d: an affine map of its buffers, in both modes", "[resnet]") {
  FrozenBatchNorm2d norm(2);
  CHECK(norm->parameters().empty());
  norm->weight.copy_(torch::tensor({2.0F, 3.0F}));
  norm->bias.copy_(torch::tensor({1.0F, -1.0F}));
  norm->running_mean.copy_(torch::tensor({0.5F, 0.0F}));
  norm->running_var.copy_(torch::tensor({4.0F, 1.0F}));
  const at::Tensor x = at::full({1, 2, 1, 1}, 2.5F);
  for (const bool training : {true, false}) {
    norm->train(training);
    const at::Tensor y = norm(x).flatten();
    CHECK(y[0].item<float>() == Approx(1.0F + 2.0F * (2.5F - 0.5F) / 2.0F).epsilon(1e-5));
    CHECK(y[1].item<float>() == Approx(-1.0F + 3.0F * 2.5F).epsilon(1e-5));
  }
}

TEST_CASE("sinusoid_1d: the table of LeRobot (Python)", "[resnet]") {
  const at::Tensor table = sinusoid_1d(3, 6);
  const std::vector<float> row{0.8415F, 0.5403F, 0.0464F, 0.9989F, 0.0022F, 1.0000F};
  for (std::int64_t d = 0; d < 6; ++d) {
    CHECK(table[0][d].item<float>() == (d % 2 == 0 ? 0.0F : 1.0F));
    CHECK(table[1][d].item<float>() == Approx(row[static_cast<std::size_t>(d)]).margin(5e-5));
  }
}

TEST_CASE("sinusoid_2d: the map of LeRobot (Python)", "[resnet]") {
  // H 2, W 3, 4 channels per axis.
  const at::Tensor map = sinusoid_2d(2, 3, 8);
  const auto at = [&](std::int64_t c, std::int64_t i, std::int64_t j) { return map[c][i][j].item<double>(); };
  for (std::int64_t j = 0; j < 3; ++j) {
    CHECK(at(0, 0, j) == Approx(1.3431e-06).epsilon(1e-4));
    CHECK(at(0, 1, j) == Approx(-2.6862e-06).epsilon(1e-4));
    CHECK(at(2, 0, j) == Approx(0.031411).epsilon(1e-4));
    CHECK(at(2, 1, j) == Approx(0.062790).epsilon(1e-4));
  }
  for (std::int64_t i = 0; i < 2; ++i) {
    CHECK(at(4, i, 0) == Approx(0.86603).epsilon(1e-4));
    CHECK(at(4, i, 1) == Approx(-0.86602).epsilon(1e-4));
    CHECK(at(4, i, 2) == Approx(-1.7325e-06).epsilon(1e-3));
    CHECK(at(6, i, 0) == Approx(0.020942).epsilon(1e-4));
    CHECK(at(6, i, 2) == Approx(0.062790).epsilon(1e-4));
  }
  CHECK_THROWS_WITH(sinusoid_2d(2, 3, 7), Catch::Contains("even"));
}
