#include "lerobot/optim/optimizer.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "lerobot/core/error.hpp"

using namespace lerobot;
using optim::GroupOptions;
using optim::Optimizer;
using optim::OptimizerKind;
using optim::StateNaming;

namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

Optimizer one_group(OptimizerKind kind, const GroupOptions& options, const NamedTensors& params) {
  std::vector<optim::ParamGroup> groups;
  groups.push_back(optim::make_group(options, params));
  return {kind, std::move(groups)};
}

at::Tensor leaf(at::Tensor value) { return value.detach().clone().requires_grad_(); }

void check_sequence(OptimizerKind kind, const GroupOptions& options, std::vector<double> expected, double grad = 0.5) {
  const at::Tensor p = leaf(at::ones({1}));
  auto optimizer = one_group(kind, options, {{"p", p}});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    p.mutable_grad() = at::full({1}, grad);
    optimizer.step();
    INFO("step " << i + 1);
    CHECK(p.item<double>() == Approx(expected[i]).margin(2e-7).epsilon(0));
  }
}

// Three updates with the same gradients, cut into rows as given; returns parameter and state glued together.
std::vector<at::Tensor> train_cut(OptimizerKind kind, const GroupOptions& options, at::ScalarType dtype,
                                  const std::vector<std::int64_t>& cuts) {
  const std::int64_t rows = 1111;
  torch::manual_seed(5);
  const at::Tensor initial = at::randn({rows, 3}).to(dtype);
  NamedTensors params;
  std::vector<std::int64_t> sizes;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::int64_t end = i < cuts.size() ? cuts[i] : rows;
    params.emplace_back("p" + std::to_string(i), leaf(initial.slice(0, begin, end)));
    sizes.push_back(end - begin);
    begin = end;
  }
  auto optimizer = one_group(kind, options, params);
  for (int step = 0; step < 3; ++step) {
    const auto grads = at::split_with_sizes((at::randn({rows, 3}) * std::pow(10.0, step - 2)).to(dtype), sizes);
    for (std::size_t i = 0; i < params.size(); ++i) params[i].second.mutable_grad() = grads[i];
    optimizer.step();
  }
  std::vector<std::vector<at::Tensor>> parts(5);
  for (const auto& param : optimizer.groups()[0].params) {
    const auto& s = param.state;
    const at::Tensor all[] = {param.value.local, s.exp_avg, s.exp_avg_sq, s.max_exp_avg_sq, s.momentum_buffer};
    for (std::size_t k = 0; k < 5; ++k)
      if (all[k].defined()) parts[k].push_back(all[k].detach());
  }
  std::vector<at::Tensor> glued;
  for (const auto& part : parts)
    if (!part.empty()) glued.push_back(at::cat(part));
  return glued;
}

}  // namespace

TEST_CASE("Optimizer: ten updates of each kind give the numbers of PyTorch", "[optimizer][unit]") {
  check_sequence(OptimizerKind::kAdamW, {.lr = 0.1, .weight_decay = 0.01},
                 {0.89900000, 0.79810100, 0.69730290, 0.59660560, 0.49600900, 0.39551299, 0.29511748, 0.19482237,
                  0.09462755, -0.00546708});
  check_sequence(OptimizerKind::kAdam, {.lr = 0.1, .weight_decay = 0.1},
                 {0.90000000, 0.80004734, 0.70017457, 0.60041493, 0.50080224, 0.40137086, 0.30215561, 0.20319168,
                  0.10451458, 0.00616003});
  check_sequence(OptimizerKind::kSgd, {.lr = 0.1, .momentum = 0.9},
                 {0.95000000, 0.85500000, 0.71950000, 0.54755000, 0.34279500, 0.10851550, -0.15233605, -0.43710245,
                  -0.74339220, -1.06905298});
  check_sequence(OptimizerKind::kAdamW, {.lr = 0.1, .weight_decay = 0.01}, {0.899, 0.798101, 0.697302899}, 1.0);
}

TEST_CASE("Optimizer: an element gets the same bits wherever its tensor is cut", "[optimizer][unit]") {
  std::mt19937 rng(2);
  const std::pair<OptimizerKind, GroupOptions> cases[] = {
      {OptimizerKind::kAdamW, {.lr = 1e-2, .weight_decay = 1e-2}},
      {OptimizerKind::kAdamW, {.lr = 1e-2, .weight_decay = 1e-2, .amsgrad = true, .maximize = true}},
      {OptimizerKind::kAdam, {.lr = 1e-3, .beta1 = 0.95, .weight_decay = 1e-6}},
      {OptimizerKind::kSgd, {.lr = 1e-2, .weight_decay = 1e-2, .momentum = 0.9, .nesterov = true}},
      {OptimizerKind::kSgd, {.lr = 1e-2, .momentum = 0.0}},
  };
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kDouble})
    for (const auto& [kind, options] : cases) {
      const auto whole = train_cut(kind, options, dtype, {});
      for (int trial = 0; trial < 6; ++trial) {
        std::vector<std::int64_t> cuts;
        for (std::int64_t row = 0; row < 1111;) {
          row += static_cast<std::int64_t>(rng() % (trial % 2 == 0 ? 400 : 12));  // also pieces without rows
          if (row < 1111) cuts.push_back(row);
        }
        const auto cut = train_cut(kind, options, dtype, cuts);
        REQUIRE(cut.size() == whole.size());
        for (std::size_t k = 0; k < whole.size(); ++k) {
          INFO("kind " << static_cast<int>(kind) << " dtype " << dtype << " trial " << trial << " tensor " << k);
          REQUIRE(at::equal(cut[k], whole[k]));
        }
      }
    }
}

TEST_CASE("Optimizer: tails with different step counts are each updated with their own", "[optimizer][unit]") {
  const auto run = [](bool together) {
    const at::Tensor a = leaf(at::ones({5})), b = leaf(at::ones({7}));
    auto optimizer = one_group(OptimizerKind::kAdamW, {.lr = 0.1}, {{"a", a}, {"b", b}});
    auto separate = one_group(OptimizerKind::kAdamW, {.lr = 0.1}, {{"b", b}});
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      a.mutable_grad() = at::full({5}, 1.0 + step);
      if (step % 2 == 1) b.mutable_grad() = at::full({7}, 2.0 - step);
      if (together) {
        optimizer.step();
      } else {
        if (step % 2 == 1) separate.step();
      }
    }
    return b.detach().clone();
  };
  CHECK(at::equal(run(true), run(false)));
}

TEST_CASE("Optimizer: a parameter without gradient keeps value, step count and has no state", "[optimizer][unit]") {
  const at::Tensor a = leaf(at::ones({4})), b = leaf(at::ones({4}));
  auto optimizer = one_group(OptimizerKind::kAdamW, {.lr = 0.1}, {{"a", a}, {"b", b}});
  a.mutable_grad() = at::ones({4});
  optimizer.step();
  CHECK(at::equal(b, at::ones({4})));
  const auto state = optimizer.state_dict(StateNaming::kIndex);
  REQUIRE(state.size() == 3);
  CHECK(state[0].first == "state/0/step");
  CHECK(state[0].second.local.item<float>() == 1.0F);
  CHECK(state[1].first == "state/0/exp_avg");
  CHECK(state[2].first == "state/0/exp_avg_sq");
  optimizer.zero_grad();
  CHECK_FALSE(a.grad().defined());
  CHECK(optimizer.gradients().empty());
}

TEST_CASE("Optimizer: a gradient in another layout or dtype is brought to that of the parameter", "[optimizer][unit]") {
  torch::manual_seed(1);
  const at::Tensor value = at::randn({6, 5}), grad = at::randn({6, 5}).to(at::kBFloat16);
  const at::Tensor a = leaf(value), b = leaf(value), c = value.t().contiguous().t().detach().requires_grad_();
  auto optimizer = one_group(OptimizerKind::kAdamW, {.lr = 0.1}, {{"a", a}, {"b", b}, {"c", c}});
  a.mutable_grad() = grad.to(at::kFloat);
  b.mutable_grad() = grad.to(at::kFloat).t().contiguous().t();
  c.mutable_grad() = grad.to(at::kFloat);
  optimizer.step();
  CHECK(at::equal(a, b));
  CHECK(at::equal(a, c));
}

TEST_CASE("Optimizer: groups are written as LeRobot (Python) writes them, and read back strictly",
          "[optimizer][unit]") {
  const std::string path =
      LEROBOT_TEST_DATA "/checkpoints/single_sched/run/checkpoints/000006/training_state/optimizer_param_groups.json";
  const Json saved = Json::parse(std::ifstream(path));
  NamedTensors params;
  for (std::size_t i = 0; i < saved[0].at("params").size(); ++i)
    params.emplace_back("p" + std::to_string(i), leaf(at::zeros({1})));
  auto optimizer = one_group(OptimizerKind::kAdamW, {.lr = 1.0, .initial_lr = 1.0}, params);
  optimizer.load_param_groups(saved, StateNaming::kIndex, path);
  CHECK(optimizer.param_groups(StateNaming::kIndex).dump(4) == saved.dump(4));
  CHECK(optimizer.groups()[0].options.lr == 1e-5);

  const auto refuses = [&](const Json& changed, const std::string& text) {
    CHECK_THROWS_WITH(optimizer.load_param_groups(changed, StateNaming::kIndex, "groups.json"), Catch::Contains(text));
  };
  Json changed = saved;
  changed[0]["lr"] = 1;
  refuses(changed, "integer");
  changed = saved;
  changed[0]["fused"] = true;
  refuses(changed, "fused");
  changed = saved;
  changed[0].erase("initial_lr");
  refuses(changed, "initial_lr");
  changed = saved;
  changed[0]["params"].erase(3);
  refuses(changed, "73");
  changed = saved;
  changed[0]["decoupled_weight_decay"] = false;
  refuses(changed, "decoupled_weight_decay");
  changed = saved;
  changed[0]["params"][3] = 2;
  refuses(changed, "params");
}

TEST_CASE("Optimizer: by FQN, saved groups find theirs whatever the order of parameters", "[optimizer][unit]") {
  const auto make = [](double lr) {
    std::vector<optim::ParamGroup> groups;
    groups.push_back(optim::make_group({.lr = lr}, {{"x", leaf(at::zeros({1}))}, {"y", leaf(at::zeros({1}))}}));
    groups.push_back(optim::make_group({.lr = lr / 2}, {}));
    groups.push_back(optim::make_group({.lr = lr / 4}, {{"z", leaf(at::zeros({1}))}}));
    return Optimizer(OptimizerKind::kAdamW, std::move(groups));
  };
  auto saved = make(1.0);
  Json json = saved.param_groups(StateNaming::kFqn);
  CHECK(json[0].at("params").dump() == R"(["x","y"])");
  std::swap(json[0], json[2]);
  json[2]["params"] = {"y", "w"};
  auto running = make(8.0);
  running.load_param_groups(json, StateNaming::kFqn, "optimizer_0");
  CHECK(running.groups()[0].options.lr == 1.0);
  CHECK(running.groups()[1].options.lr == 0.5);
  CHECK(running.groups()[2].options.lr == 0.25);
  json[2]["params"] = {"w"};
  CHECK_THROWS_WITH(running.load_param_groups(json, StateNaming::kFqn, "optimizer_0"), Catch::Contains("[w]"));
}

TEST_CASE("Optimizer: rebinding to slices keeps names, cuts state and goes on with the same bits",
          "[optimizer][unit]") {
  torch::manual_seed(9);
  const at::Tensor value = at::randn({7, 3}), g1 = at::randn({7, 3}), g2 = at::randn({7, 3});
  const at::Tensor whole = leaf(value);
  auto optimizer = one_group(OptimizerKind::kAdamW, {.lr = 0.1}, {{"w", whole}});
  whole.mutable_grad() = g1;
  optimizer.step();
  const at::Tensor shard = leaf(whole.slice(0, 4, 7));
  whole.mutable_grad() = g2;
  auto rebound = one_group(OptimizerKind::kAdamW, {.lr = 0.1}, {{"w", whole}});
  rebound.groups()[0].params[0].state = optimizer.groups()[0].params[0].state;
  rebound.groups()[0].params[0].state.step = optimizer.groups()[0].params[0].state.step.clone();
  rebound.rebind({{"w", {shard, {7, 3}, 4, true}}});
  shard.mutable_grad() = g2.slice(0, 4, 7);
  rebound.step();
  optimizer.step();
  CHECK(at::equal(shard, whole.slice(0, 4, 7)));
  const auto state = rebound.state_dict(StateNaming::kFqn);
  CHECK(state[1].first == "state.w.exp_avg");
  CHECK(state[1].second.is_sharded);
  CHECK(state[1].second.row_begin == 4);
  CHECK(state[1].second.global_shape == std::vector<std::int64_t>{7, 3});
  CHECK_FALSE(state[0].second.is_sharded);
  CHECK(rebound.gradients()[0].is_sharded);
  CHECK_THROWS_WITH(rebound.rebind({}), Catch::Contains("\"w\""));
}

TEST_CASE("Optimizer: state is allocated for what a checkpoint has, without touching parameters", "[optimizer][unit]") {
  const at::Tensor a = leaf(at::ones({3})), b = leaf(at::ones({2}));
  auto optimizer = one_group(OptimizerKind::kAdam, {}, {{"a", a}, {"b", b}});
  const auto entries =
      optimizer.allocate_state(StateNaming::kIndex, [](const std::string& name) { return name == "state/1/step"; });
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].first == "state/1/exp_avg");
  entries[0].second.local.fill_(4.0F);
  b.mutable_grad() = at::ones({2});
  optimizer.step();
  CHECK(optimizer.state_dict(StateNaming::kIndex)[0].second.local.item<float>() == 5.0F);
  CHECK(at::equal(a, at::ones({3})));
  auto sgd = one_group(OptimizerKind::kSgd, {.momentum = 0.0}, {{"a", a}});
  CHECK(sgd.allocate_state(StateNaming::kIndex, [](const std::string&) { return true; }).empty());
}

TEST_CASE("Optimizer: settings and parameters that make no sense are refused", "[optimizer][unit]") {
  const NamedTensors params{{"a", leaf(at::ones({3}))}};
  CHECK_THROWS_WITH(one_group(OptimizerKind::kSgd, {.nesterov = true}, params), Catch::Contains("nesterov"));
  CHECK_THROWS_WITH(one_group(OptimizerKind::kAdam, {.beta2 = 1.0}, params), Catch::Contains("betas[1]"));
  CHECK_THROWS_WITH(one_group(OptimizerKind::kAdam, {}, {params[0], params[0]}), Catch::Contains("twice"));
  CHECK_THROWS_WITH(one_group(OptimizerKind::kAdam, {}, {{"s", leaf(at::ones({3, 4}).t()).slice(0, 0, 2)}}),
                    Catch::Contains("\"s\""));
}
