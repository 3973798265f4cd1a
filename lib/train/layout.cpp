#include "layout.hpp"

#include <torch/torch.h>

#include "lerobot/comm/comm.hpp"
#include "lerobot/ddp/ddp.hpp"
#include "lerobot/fsdp/fsdp.hpp"
#include "setup.hpp"

namespace lerobot::train {
namespace {

mesh::TensorSlice whole(const at::Tensor& tensor) {
  return {.local = tensor, .global_shape = tensor.sizes().vec(), .row_begin = 0, .is_sharded = false};
}

/// One process: the module as it is.
class SingleLayout : public Layout {
 public:
  explicit SingleLayout(std::shared_ptr<policies::Policy> policy) : policy_(std::move(policy)) {}

  mesh::StateDict parameters() const override {
    mesh::StateDict state;
    for (const auto& entry : policy_->named_parameters()) state.emplace_back(entry.key(), whole(entry.value()));
    return state;
  }
  mesh::StateDict model_state() const override {
    mesh::StateDict state = parameters();
    for (const auto& entry : policy_->named_buffers()) state.emplace_back(entry.key(), whole(entry.value()));
    return state;
  }
  std::unique_ptr<NoSyncScope> no_sync() override { return nullptr; }
  comm::ProcessGroupPtr norm_group() const override { return nullptr; }

 private:
  std::shared_ptr<policies::Policy> policy_;
};

/// Every rank holds the whole policy.
class DdpLayout final : public SingleLayout {
 public:
  DdpLayout(const std::shared_ptr<policies::Policy>& policy, ddp::Replicated replicated)
      : SingleLayout(policy), replicated_(std::move(replicated)) {}

  std::unique_ptr<NoSyncScope> no_sync() override {
    struct Scope final : NoSyncScope {
      explicit Scope(ddp::Replicated& replicated) : hold(replicated) {}
      ddp::NoSync hold;
    };
    return std::make_unique<Scope>(replicated_);
  }

 private:
  ddp::Replicated replicated_;
};

/// Parameters are split over `dp_shard` ranks, and that is repeated `dp_replicate` times.
class ShardedLayout final : public Layout {
 public:
  ShardedLayout(fsdp::ShardedModule sharded, fsdp::ShardGroups groups, int replica_rank)
      : sharded_(std::move(sharded)), groups_(std::move(groups)), replica_rank_(replica_rank) {}

  mesh::StateDict parameters() const override { return sharded_.parameters(); }
  mesh::StateDict model_state() const override { return sharded_.state_dict(); }
  std::unique_ptr<NoSyncScope> no_sync() override {
    struct Scope final : NoSyncScope {
      explicit Scope(fsdp::ShardedModule& sharded) : hold(sharded) {}
      fsdp::NoSync hold;
    };
    return std::make_unique<Scope>(sharded_);
  }
  comm::ProcessGroupPtr norm_group() const override { return groups_.shard; }
  int replica_rank() const override { return replica_rank_; }
  std::vector<std::string> description() const override {
    std::vector<std::string> lines;
    for (const auto& unit : sharded_.units())
      lines.push_back(fmt::format("wrap unit {} ({}): {} parameters, {:.2f} MB here, {:.2f} MB gathered",
                                  unit.path.empty() ? "<root>" : unit.path, unit.class_name, unit.num_params,
                                  static_cast<double>(unit.shard_nbytes) / 1048576.0,
                                  static_cast<double>(unit.gathered_nbytes) / 1048576.0));
    return lines;
  }

 private:
  fsdp::ShardedModule sharded_;
  fsdp::ShardGroups groups_;
  int replica_rank_;
};

std::unique_ptr<Layout> make_sharded_layout(Run& run) {
  const auto num_shards = static_cast<int>(run.config.parallelism.dp_shard);
  const int rank = run.dp_rank();
  fsdp::ShardGroups groups{.shard = run.device_group, .replicate = nullptr, .reshard = nullptr};
  if (run.config.parallelism.dp_replicate > 1) {
    groups.shard = comm::split(run.device_group, rank / num_shards, "dp_shard");
    groups.replicate = comm::split(run.device_group, rank % num_shards, "dp_replicate");
  }
  const config::FsdpConfig& config = run.config.accelerator.fsdp;
  fsdp::FsdpOptions options;
  options.wrap = {.class_names = config.wrap_modules.value_or(std::vector<std::string>{}),
                  .min_num_params = config.min_num_params,
                  .declared = run.policy_type->wrap_modules};
  options.reshard_after_forward = config.reshard_after_forward;
  options.ignored_modules = config.ignored_modules;
  options.logger = &run.logger;
  // Equal weights on all ranks are a condition of sharding: a policy may have drawn them differently.
  {
    torch::NoGradGuard no_grad;
    for (const auto& parameter : run.policy->parameters()) comm::broadcast(*run.device_group, parameter.detach());
    for (const auto& buffer : run.policy->buffers()) comm::broadcast(*run.device_group, buffer);
  }
  std::optional<fsdp::ShardedModule> sharded;
  comm::on_every_rank(*run.context.world, ErrorKind::kConfig, "sharding",
                      [&] { sharded.emplace(fsdp::fully_shard(run.policy, groups, options)); });
  run.optimizer->rebind(sharded->parameters());
  return std::make_unique<ShardedLayout>(std::move(*sharded), std::move(groups), rank / num_shards);
}

}  // namespace

std::unique_ptr<Layout> make_layout(Run& run) {
  if (run.config.parallelism.sharded()) return make_sharded_layout(run);
  if (run.dp_world() == 1) return std::make_unique<SingleLayout>(run.policy);
  const config::DdpConfig& ddp = run.config.accelerator.ddp;
  return std::make_unique<DdpLayout>(run.policy, ddp::replicate(run.policy, run.device_group,
                                                                {.find_unused_parameters = ddp.find_unused_parameters,
                                                                 .gradient_as_bucket_view = ddp.gradient_as_bucket_view,
                                                                 .static_graph = ddp.static_graph}));
}

}  // namespace lerobot::train
