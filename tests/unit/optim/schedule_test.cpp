#include "lerobot/optim/schedule.hpp"

#include <torch/torch.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "lerobot/core/error.hpp"

using namespace lerobot;
using optim::ScheduleKind;
using optim::ScheduleOptions;

namespace {

Json golden() { return Json::parse(std::ifstream(LEROBOT_TEST_DATA "/schedulers/schedules.json")); }

ScheduleOptions options_of(const Json& entry) {
  const Json& config = entry.at("config");
  ScheduleOptions options;
  options.kind = optim::schedule_kind(entry.at("type").get<std::string>(), config.value("name", std::string()));
  options.num_warmup_steps = config.at("num_warmup_steps").get<std::int64_t>();
  options.num_vqvae_training_steps = config.value("num_vqvae_training_steps", std::int64_t{0});
  options.num_cycles = config.value("num_cycles", 0.5);
  options.num_decay_steps = config.value("num_decay_steps", std::int64_t{0});
  options.peak_lr = config.value("peak_lr", 0.0);
  options.decay_lr = config.value("decay_lr", 0.0);
  return options;
}

optim::Optimizer two_groups(double lr_a, double lr_b) {
  std::vector<optim::ParamGroup> groups;
  groups.push_back(optim::make_group({.lr = lr_a}, {{"a", at::zeros({2}).requires_grad_()}}));
  groups.push_back(optim::make_group({.lr = lr_b}, {{"b", at::zeros({2}).requires_grad_()}}));
  return {optim::OptimizerKind::kAdamW, std::move(groups)};
}

}  // namespace

TEST_CASE("schedule: every type gives the recorded rates and state of LeRobot (Python)", "[schedule][unit]") {
  const Json all = golden();
  for (const auto& [name, entry] : all.items()) {
    INFO(name);
    auto optimizer = two_groups(1e-3, 1e-4);
    optim::LambdaSchedule schedule(optimizer, optim::make_schedule(options_of(entry), 50, 1e-3));
    const Json& rates = entry.at("lr_used_at_step");
    REQUIRE(rates.size() == 60);
    for (std::size_t step = 0; step < rates.size(); ++step) {
      for (std::size_t g = 0; g < 2; ++g) {
        const double expected = rates[step][g].get<double>();
        INFO("step " << step << " group " << g);
        REQUIRE(std::abs(optimizer.groups()[g].options.lr - expected) <= 1e-15 * std::abs(expected));
      }
      schedule.step();
    }
    const Json state = schedule.state();
    const Json& expected = entry.at("state_dict_at_end");
    CHECK_NOTHROW(schedule.load_state(expected, name));
    CHECK(state.at("last_epoch") == expected.at("last_epoch"));
    CHECK(state.at("_step_count") == expected.at("_step_count"));
    CHECK(state.at("_last_lr")[0].get<double>() == Approx(expected.at("_last_lr")[0].get<double>()).epsilon(1e-12));
  }
}

TEST_CASE("schedule: the state restores the place on the curve and the initial rates", "[schedule][unit]") {
  const ScheduleOptions options{.kind = ScheduleKind::kConstantWithWarmup, .num_warmup_steps = 4};
  auto first = two_groups(1e-3, 1e-4);
  optim::LambdaSchedule a(first, optim::make_schedule(options, 20, 1e-3));
  a.step();
  a.step();
  auto second = two_groups(0.5, 0.25);
  optim::LambdaSchedule b(second, optim::make_schedule(options, 20, 1e-3));
  b.load_state(a.state(), "scheduler_state.json");
  a.step();
  b.step();
  CHECK(second.groups()[0].options.lr == first.groups()[0].options.lr);
  CHECK(second.groups()[1].options.lr == 1e-4 * 0.75);
  CHECK(b.state().dump() == a.state().dump());
}

TEST_CASE("schedule: a state of another structure or with other primitive kinds is refused", "[schedule][unit]") {
  auto optimizer = two_groups(1e-3, 1e-4);
  optim::LambdaSchedule schedule(optimizer, optim::make_schedule({.num_warmup_steps = 1}, 9, 1e-3));
  Json state = schedule.state();
  state["base_lrs"][0] = 1;
  CHECK_THROWS_WITH(schedule.load_state(state, "f.json"), Catch::Contains("base_lrs[0]") && Catch::Contains("integer"));
  state = schedule.state();
  state["lr_lambdas"].push_back(nullptr);
  CHECK_THROWS_WITH(schedule.load_state(state, "f.json"), Catch::Contains("lr_lambdas") && Catch::Contains("f.json"));
  state = schedule.state();
  state.erase("_is_initial");
  CHECK_THROWS_WITH(schedule.load_state(state, "f.json"), Catch::Contains("_is_initial"));
  state["more"] = 1;
  CHECK_THROWS_AS(schedule.load_state(state, "f.json"), Error);
}

TEST_CASE("schedule: a run shorter than the decay scales warm-up and decay, and says so", "[schedule][unit]") {
  const auto schedule = optim::make_schedule({.kind = ScheduleKind::kCosineDecayWithWarmup,
                                              .num_warmup_steps = 4,
                                              .num_decay_steps = 10,
                                              .peak_lr = 1.0,
                                              .decay_lr = 0.1},
                                             5, 1.0);
  CHECK(schedule.note.find("Auto-scaling LR scheduler") != std::string::npos);
  const double expected[] = {.333333333, .666666667, .689057647, .410942353, .185942353, .1};
  for (std::int64_t s = 0; s < 6; ++s) CHECK(schedule.factor(s) == Approx(expected[s]).epsilon(1e-8));
}

TEST_CASE("schedule: unknown types and names are answered with the supported ones", "[schedule][unit]") {
  CHECK_THROWS_WITH(optim::schedule_kind("step", ""), Catch::Contains("step") && Catch::Contains("vqbet"));
  CHECK_THROWS_WITH(optim::schedule_kind("diffuser", "piecewise_constant"),
                    Catch::Contains("piecewise_constant") && Catch::Contains("polynomial"));
  CHECK_THROWS_WITH(optim::make_schedule({.kind = ScheduleKind::kDiffuserCosine}, 10, 1.0), Catch::Contains("null"));
}
