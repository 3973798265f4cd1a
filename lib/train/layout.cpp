#include "layout.hpp"

#include <torch/torch.h>

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

}  // namespace

std::unique_ptr<Layout> make_layout(Run& run) { return std::make_unique<SingleLayout>(run.policy); }

}  // namespace lerobot::train
