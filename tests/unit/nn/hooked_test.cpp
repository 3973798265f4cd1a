#include <torch/torch.h>

#include <catch2/catch.hpp>

#include "lerobot/nn/hooked.hpp"

namespace {

class ScaleImpl : public torch::nn::Module {
 public:
  explicit ScaleImpl(double factor) : factor_(factor) {}
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& bias) {
    at::Tensor y = x * factor_;
    return bias ? y + *bias : y;
  }

 private:
  double factor_;
};
LEROBOT_MODULE(Scale);

class AddOneImpl : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) { return x + 1; }
};
LEROBOT_MODULE(AddOne);

/// Doubles inputs, negates outputs, counts its runs.
class Probe : public lerobot::nn::Hook {
 public:
  void around(lerobot::nn::Call& call) override {
    ++runs;
    call.for_inputs([](at::Tensor& t) { t = t * 2; });
    call.run();
    call.for_outputs([](at::Tensor& t) { t = -t; });
  }
  int runs = 0;
};

/// Runs the body twice, as activation checkpointing does.
class Twice : public lerobot::nn::Hook {
 public:
  void around(lerobot::nn::Call& call) override {
    call.run();
    call.run();
  }
};

}  // namespace

TEST_CASE("Hooked: a module without hooks computes what its Impl computes", "[hooked]") {
  Scale scale(3.0);
  REQUIRE(scale(torch::ones({2}), std::nullopt).equal(torch::full({2}, 3.0)));
  REQUIRE(scale->forward(torch::ones({2}), torch::ones({2})).equal(torch::full({2}, 4.0)));
  REQUIRE(scale->class_name() == "Scale");
}

TEST_CASE("Hooked: a hook sees every tensor of the call, through m(x), m->forward(x) and Sequential", "[hooked]") {
  Scale scale(3.0);
  auto probe = std::make_shared<Probe>();
  scale->attach(lerobot::nn::HookLayer::kUnit, probe);
  REQUIRE(scale(torch::ones({2}), torch::ones({2})).equal(torch::full({2}, -8.0)));  // -(3*2 + 2)
  REQUIRE(scale->forward(torch::ones({2}), std::nullopt).equal(torch::full({2}, -6.0)));
  REQUIRE(probe->runs == 2);

  AddOne add;
  add->attach(lerobot::nn::HookLayer::kAdapter, probe);
  torch::nn::Sequential sequential(add);
  REQUIRE(sequential->forward(torch::ones({1})).equal(torch::full({1}, -3.0)));
  REQUIRE(probe->runs == 3);
  add->detach(lerobot::nn::HookLayer::kAdapter);
  REQUIRE(sequential->forward(torch::ones({1})).equal(torch::full({1}, 2.0)));
}

TEST_CASE("Hooked: hooks run from the unit inwards, and an outer hook may run the inner ones again", "[hooked]") {
  AddOne add;
  auto inner = std::make_shared<Probe>();
  auto outer = std::make_shared<Probe>();
  add->attach(lerobot::nn::HookLayer::kAdapter, inner);
  add->attach(lerobot::nn::HookLayer::kCheckpoint, std::make_shared<Twice>());
  add->attach(lerobot::nn::HookLayer::kUnit, outer);
  const at::Tensor y = add(torch::ones({1}));
  REQUIRE(inner->runs == 2);
  REQUIRE(outer->runs == 1);
  // unit doubles 1 -> 2; inner doubles its argument on each of its two runs -> 4, 8; body 9; inner -9; unit 9.
  REQUIRE(y.item<float>() == 9.0F);
}
