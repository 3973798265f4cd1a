#include "layout.hpp"

#include <torch/torch.h>

#include "lerobot/ddp/ddp.hpp"
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

}  // namespace

std::unique_ptr<Layout> make_layout(Run& run) {
  if (run.dp_world() == 1) return std::make_unique<SingleLayout>(run.policy);
  const config::DdpConfig& ddp = run.config.accelerator.ddp;
  return std::make_unique<DdpLayout>(run.policy, ddp::replicate(run.policy, run.device_group,
                                                                {.find_unused_parameters = ddp.find_unused_parameters,
                                                                 .gradient_as_bucket_view = ddp.gradient_as_bucket_view,
                                                                 .static_graph = ddp.static_graph}));
}

}  // namespace lerobot::train
