#pragma once

#include "lerobot/comm/comm.hpp"
#include "lerobot/fsdp/fsdp.hpp"
#include "support/check.hpp"
#include "support/fsdp/zoo.hpp"

// One training run in several layouts side by side, step by step.
namespace lerobot::testing {

/// Shard and replicate groups of a world, shard ranks next to each other.
inline fsdp::ShardGroups groups_of(const comm::ProcessGroupPtr& world, int num_shards) {
  const int rank = world->getRank();
  if (world->getSize() == num_shards) return {world, nullptr, nullptr};
  return {comm::split(world, rank / num_shards, "dp_shard"), comm::split(world, rank % num_shards, "dp_replicate"), nullptr};
}

/// The units of the zoo's net: everything that can be one.
inline fsdp::WrapPolicy net_units() {
  return {.class_names = {"Block", "Stem", "Head", "Tied", "Uneven"}, .min_num_params = {}, .declared = {}};
}

/// A step whose result does not depend on how a parameter is cut: each operation rounds every element by itself.
inline void sgd_step(const at::Tensor& parameter, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  parameter.copy_(parameter - gradient * 0.05);
}

inline at::Tensor rows_of(const at::Tensor& whole, const mesh::TensorSlice& slice) {
  return slice.is_sharded ? whole.narrow(0, slice.row_begin, slice.local.size(0)) : whole;
}

inline double max_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0.0 : (a - b).abs().max().item<double>();
}

struct ParityOptions {
  NetOptions net;
  int num_shards = 0;          ///< 0: all ranks
  std::int64_t num_steps = 4;
  std::int64_t accumulation = 1;
  bool to_the_bit = true;      ///< against gradients all-reduced whole; needs the same tree of sums
  double tolerance = 1e-6;     ///< against one process with every rank's batch
  /// Called once with the sharded net, before the first step.
  std::function<void(Net&)> prepare;
};

/// Trains the net sharded, replicated by hand, and on one process; compares losses, gradients and parameters.
inline void check_parity(const comm::ProcessGroupPtr& world, const ParityOptions& options, fsdp::FsdpOptions fsdp_options) {
  const int rank = world->getRank(), num_ranks = world->getSize();
  Net net = make_net(options.net), replicated = make_net(options.net), single = make_net(options.net);
  if (fsdp_options.wrap.class_names.empty() && !fsdp_options.wrap.min_num_params) fsdp_options.wrap = net_units();
  fsdp::ShardedModule sharded = fsdp::fully_shard(
      net.ptr(), groups_of(world, options.num_shards == 0 ? num_ranks : options.num_shards), fsdp_options);
  const auto by_name = [](Net& module) { return module->named_parameters(); };
  std::int64_t micro_step = 0;
  for (std::int64_t step = 0; step < options.num_steps; ++step) {
    net->use_sometimes = replicated->use_sometimes = single->use_sometimes = step % 2 == 1;
    for (std::int64_t a = 0; a < options.accumulation; ++a, ++micro_step) {
      std::optional<fsdp::NoSync> hold;
      if (a + 1 < options.accumulation) hold.emplace(sharded);
      const at::Tensor loss = loss_of(net, rank, micro_step);
      loss.backward();
      const at::Tensor whole_loss = loss_of(replicated, rank, micro_step);
      whole_loss.backward();
      check(!options.to_the_bit || loss.equal(whole_loss), "step {}: loss {} sharded, {} replicated", step,
            loss.item<float>(), whole_loss.item<float>());
      for (int r = 0; r < num_ranks; ++r) (loss_of(single, r, micro_step) / num_ranks).backward();
    }
    const auto whole_params = by_name(replicated), single_params = by_name(single);
    for (auto& [name, slice] : sharded.parameters()) {
      const at::Tensor& whole = whole_params[name];
      const at::Tensor& alone = single_params[name];
      check(slice.local.grad().defined() == whole.grad().defined(), "step {}: gradient of {} is {} sharded", step, name,
            slice.local.grad().defined() ? "there" : "missing");
      if (!whole.grad().defined()) continue;
      comm::all_reduce(*world, whole.grad(), c10d::ReduceOp::AVG);
      const at::Tensor gradient = slice.local.grad();
      check(gradient.sizes() == slice.local.sizes(), "gradient of {} has another shape than its shard", name);
      check(max_difference(gradient, rows_of(alone.grad(), slice)) <= options.tolerance,
            "step {}: gradient of {} is off by {} from one process", step, name,
            max_difference(gradient, rows_of(alone.grad(), slice)));
      check(!options.to_the_bit || gradient.equal(rows_of(whole.grad(), slice)),
            "step {}: gradient of {} differs in bits from the replicated one, by {}", step, name,
            max_difference(gradient, rows_of(whole.grad(), slice)));
      sgd_step(slice.local, gradient);
      sgd_step(whole, whole.grad());
      sgd_step(alone, alone.grad());
      whole.mutable_grad().reset();
      alone.mutable_grad().reset();
      check(!options.to_the_bit || slice.local.equal(rows_of(whole, slice)), "step {}: {} differs in bits", step, name);
      check(max_difference(slice.local, rows_of(alone, slice)) <= options.tolerance, "step {}: {} is off", step, name);
    }
    sharded.set_grads_to_none();
  }
}

}  // namespace lerobot::testing
