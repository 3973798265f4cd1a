#include "lerobot/optim/clip.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "lerobot/core/error.hpp"

using namespace lerobot;
using optim::NamedGradient;

TEST_CASE("clip_grad_norm: the small constant halves a norm equal to the limit of 1e-6", "[clip][unit]") {
  // norm 1e-6, limit 1e-6: factor 1e-6 / (1e-6 + 1e-6)
  std::vector<NamedGradient> grads{{"a", at::full({4}, 0.5e-6F)}, {"b", {}}};
  const auto norm = optim::clip_grad_norm(grads, 1e-6);
  CHECK(norm.finite);
  CHECK(norm.norm == Approx(1e-6).epsilon(1e-7));
  CHECK(at::allclose(grads[0].grad, at::full({4}, 0.25e-6F), 1e-6, 0.0));
}

TEST_CASE("clip_grad_norm: a norm below the limit leaves gradients as they are", "[clip][unit]") {
  const at::Tensor grad = at::tensor({3.0F, 4.0F});
  CHECK(optim::clip_grad_norm({{"a", grad}}, 10.0).norm == 5.0);
  CHECK(at::equal(grad, at::tensor({3.0F, 4.0F})));
  CHECK(optim::clip_grad_norm({{"a", grad}}, 1.0).norm == 5.0);
  CHECK(at::allclose(grad, at::tensor({0.6F, 0.8F}), 1e-5));
  CHECK_THROWS_WITH(optim::clip_grad_norm({{"a", grad}}, 0.0), Catch::Contains("max_norm"));
}

TEST_CASE("global_grad_norm: pieces, layouts and order do not change a bit", "[clip][unit]") {
  torch::manual_seed(11);
  const at::Tensor a = at::randn({37, 53}) * 1e-3, b = at::randn({8, 3, 5, 5}), c = at::randn({1});
  const double norm = optim::global_grad_norm({{"a", a}, {"b", b}, {"c", c}}).norm;
  const double reference =
      std::sqrt((at::cat({a.flatten(), b.flatten(), c}).to(at::kDouble).square().sum().item<double>()));
  CHECK(norm == Approx(reference).epsilon(1e-14));
  std::vector<NamedGradient> pieces{{"c", c}};
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 5}, {5, 29}, {29, 37}})
    pieces.push_back({"a", a.slice(0, begin, end), true});
  pieces.push_back({"b", b.contiguous(at::MemoryFormat::ChannelsLast)});
  CHECK(optim::global_grad_norm(pieces).norm == norm);
  CHECK(optim::global_grad_norm({{"a", a.t()}, {"b", b.to(at::kDouble)}, {"c", c}}).norm == norm);
}

TEST_CASE("global_grad_norm: reports the first parameter with a bad element, and of which kind", "[clip][unit]") {
  at::Tensor bad = at::ones({70});
  bad[69] = std::numeric_limits<float>::infinity();
  std::vector<NamedGradient> grads{{"fine", at::ones({3})}, {"inf", bad}, {"also", bad.to(at::kBFloat16)}};
  auto norm = optim::clip_grad_norm(grads, 1.0);
  CHECK_FALSE(norm.finite);
  CHECK(norm.first_bad == "inf");
  CHECK(std::isinf(norm.norm));
  CHECK(at::equal(grads[0].grad, at::ones({3})));
  bad[3] = std::nanf("");
  norm = optim::global_grad_norm(grads);
  CHECK(norm.first_bad == "inf");
  CHECK(std::isnan(norm.norm));
}
