#include "lerobot/nn/dropout.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>

namespace {

using lerobot::nn::add_dropout;
using lerobot::nn::dropout;

at::Tensor mask(std::int64_t n, double p, std::uint64_t seed) {
  at::manual_seed(seed);
  return dropout(at::ones({n}), p);
}

}  // namespace

TEST_CASE("dropout: drops the asked share, unbiased and without pattern", "[dropout]") {
  constexpr std::int64_t kCount = 1 << 22;
  for (const double p : {0.1, 0.5, 0.9}) {
    INFO(p);
    const at::Tensor kept = mask(kCount, p, 3) != 0;
    const double n = kCount, q = 1 - p;
    const double sigma = std::sqrt(p * q / n);
    CHECK(std::abs(kept.to(at::kDouble).mean().item<double>() - q) < 5 * sigma);
    // Neighbours at many distances, and the masks of other keys, are independent: covariance within five sigma.
    const at::Tensor centred = kept.to(at::kDouble) - q;
    for (const std::int64_t lag : {1, 2, 3, 7, 8, 16, 64, 100, 512, 4096, 65536}) {
      INFO("lag " << lag);
      const at::Tensor product = centred.narrow(0, 0, kCount - lag) * centred.narrow(0, lag, kCount - lag);
      CHECK(std::abs(product.mean().item<double>()) < 5 * p * q / std::sqrt(n));
    }
    for (const std::uint64_t seed : {4, 5, 1000}) {
      INFO("seed " << seed);
      const at::Tensor other = (mask(kCount, p, seed) != 0).to(at::kDouble) - q;
      CHECK(std::abs((centred * other).mean().item<double>()) < 5 * p * q / std::sqrt(n));
    }
    // Counts in blocks of 64 follow the binomial variance.
    const at::Tensor blocks = kept.to(at::kDouble).view({-1, 64}).sum(1);
    CHECK(blocks.var().item<double>() == Approx(64 * p * q).epsilon(0.05));
    CHECK(mask(kCount, p, 3).max().item<double>() == Approx(1 / q));
  }
}

TEST_CASE("dropout: the gradient is that of the same mask", "[dropout]") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    INFO(type);
    at::manual_seed(1);
    const at::Tensor x = at::randn({37, 11}).to(type).requires_grad_();
    const at::Tensor y = dropout(x, 0.3);
    const at::Tensor weight = at::randn({37, 11}).to(type);
    (y * weight).sum().backward();
    const at::Tensor kept = (y != 0).to(type) * (1 / 0.7);
    const double tolerance = type == at::kBFloat16 ? 1e-2 : 1e-6;
    CHECK(at::allclose(y.detach(), x.detach() * kept, tolerance, tolerance));
    CHECK(at::allclose(x.grad(), weight * kept, tolerance, tolerance));
  }
}

TEST_CASE("dropout: one state of the generator gives one mask, and the next call another", "[dropout]") {
  at::manual_seed(9);
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  const at::Tensor first = dropout(at::ones({1000}), 0.5), second = dropout(at::ones({1000}), 0.5);
  CHECK_FALSE(at::equal(first, second));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(state);
  CHECK(at::equal(dropout(at::ones({1000}), 0.5), first));
  CHECK(at::equal(dropout(at::ones({1000}), 0.5), second));
}

TEST_CASE("dropout: the mask does not depend on the number of threads or on the layout", "[dropout]") {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor serial = mask(1 << 20, 0.2, 7);
  at::set_num_threads(3);
  const at::Tensor parallel = mask(1 << 20, 0.2, 7);
  at::set_num_threads(threads);
  CHECK(at::equal(serial, parallel));

  at::manual_seed(8);
  const at::Tensor x = at::randn({50, 60});
  at::manual_seed(7);
  const at::Tensor contiguous = dropout(x, 0.4);
  at::manual_seed(7);
  CHECK(at::equal(dropout(x.t().contiguous().t(), 0.4), contiguous));
}

TEST_CASE("dropout: without a probability nothing is drawn", "[dropout]") {
  at::manual_seed(2);
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  const at::Tensor x = at::randn({3});
  at::manual_seed(2);
  CHECK(dropout(x, 0.0).is_same(x));
  CHECK(at::equal(at::detail::getDefaultCPUGenerator().get_state(), state));
  CHECK(at::equal(dropout(x, 1.0), at::zeros({3})));
}

TEST_CASE("add_dropout: adds what dropout gives", "[dropout]") {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    at::manual_seed(1);
    const at::Tensor residual = at::randn({8, 9}, type).requires_grad_(), x = at::randn({8, 9}, type).requires_grad_();
    const at::Tensor weight = at::randn({8, 9}, type);
    at::manual_seed(4);
    const at::Tensor sum = add_dropout(residual, x, 0.25);
    (sum * weight).sum().backward();
    at::manual_seed(4);
    const at::Tensor dropped = dropout(x.detach(), 0.25);
    CHECK(at::allclose(sum.detach(), residual.detach() + dropped));
    CHECK(at::equal(residual.grad(), weight));
    CHECK(at::allclose(x.grad(), weight * (dropped != 0) / 0.75));
  }
}
