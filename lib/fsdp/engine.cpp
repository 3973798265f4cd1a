#include "fsdp/engine.hpp"

#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>

#include "fsdp/autograd_nodes.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::fsdp {
namespace {

class UnitHook final : public nn::Hook {
 public:
  UnitHook(Engine& engine, std::size_t unit) : engine_(engine), unit_(unit) {}
  void around(nn::Call& call) override { engine_.forward(unit_, call); }

 private:
  Engine& engine_;  // takes the hook off before it dies
  std::size_t unit_;
};

void cast_floating(at::Tensor& tensor, at::ScalarType dtype) {
  if (tensor.is_floating_point()) tensor = tensor.to(dtype);
}

}  // namespace

Engine::Engine(std::shared_ptr<torch::nn::Module> module, std::vector<Unit> units, std::vector<ShardedParam> ignored,
               const ShardGroups& groups, const FsdpOptions& options)
    : module_(std::move(module)),
      units_(std::move(units)),
      ignored_(std::move(ignored)),
      groups_(groups),
      mp_policy_(options.mp_policy),
      keeps_whole_after_forward_(options.reshard_after_forward.keeps_whole()) {}

Engine::~Engine() { detach(); }

void Engine::attach() {
  for (std::size_t u = 0; u < units_.size(); ++u)
    units_[u].hook_point->attach(nn::HookLayer::kUnit, std::make_shared<UnitHook>(*this, u));
}

void Engine::detach() noexcept {
  for (Unit& unit : units_)
    if (nn::HookPoint* point = std::exchange(unit.hook_point, nullptr)) point->detach(nn::HookLayer::kUnit);
}

// ---- forward

void Engine::forward(std::size_t index, nn::Call& call) {
  Unit& unit = units_[index];
  // Activation checkpointing runs a forward again from within backward; that is no pass of its own.
  const bool outermost = depth_ == 0 && !in_backward_;
  if (outermost) begin_pass();
  ++depth_;
  try {
    if (in_backward_) {
      unit.group->unshard();
    } else {
      unshard_and_fetch_ahead(index, *forward_order_);
    }
    if (mp_policy_.param_dtype && mp_policy_.cast_forward_inputs)
      call.for_inputs([&](at::Tensor& input) { cast_floating(input, *mp_policy_.param_dtype); });
    if (at::GradMode::is_enabled()) record_inputs(index, call);
    call.run();
    free_after_forward(unit);
    if (at::GradMode::is_enabled()) record_outputs(index, call);
    if (mp_policy_.output_dtype)
      call.for_outputs([&](at::Tensor& output) { cast_floating(output, *mp_policy_.output_dtype); });
  } catch (...) {
    --depth_;
    if (outermost) {
      abandon_pass();
    } else if (unit.num_pins == 0 && !in_backward_) {
      unit.group->reshard();
    }
    throw;
  }
  --depth_;
}

void Engine::begin_pass() {
  forward_order_ = at::GradMode::is_enabled() ? &train_order_ : &eval_order_;
  forward_order_->begin_pass();
  recorded_.clear();
  ahead_.reset();
  for (Unit& unit : units_) {
    // Left whole by a forward that no backward followed: its values may be older than the shards.
    if (unit.num_pins == 0) unit.group->reshard();
    unit.group->follow_requires_grad();
  }
}

void Engine::unshard_and_fetch_ahead(std::size_t index, CallOrder& order) {
  if (ahead_ && *ahead_ != index && units_[*ahead_].num_pins == 0) units_[*ahead_].group->reshard();  // a wrong guess
  ahead_.reset();
  const int next = order.note(static_cast<int>(index));
  units_[index].group->unshard();
  if (next == CallOrder::kUnknown) return;
  const auto ahead = static_cast<std::size_t>(next);
  if (units_[ahead].group->state() != ParamGroup::State::kSharded) return;
  units_[ahead].group->start_unshard();
  ahead_ = ahead;
}

void Engine::free_after_forward(Unit& unit) {
  if (unit.num_pins > 0 || in_backward_) return;
  if (!at::GradMode::is_enabled()) {
    unit.group->reshard();
  } else if (!unit.is_root && !keeps_whole_after_forward_) {
    unit.group->reshard_after_forward();
  }
}

void Engine::record_inputs(std::size_t index, nn::Call& call) {
  std::vector<at::Tensor*> inputs;
  call.for_inputs([&](at::Tensor& input) {
    if (input.requires_grad()) inputs.push_back(&input);
  });
  if (inputs.empty()) return;
  const auto self = shared_from_this();
  ++units_[index].num_live_calls;
  auto recorded = std::make_shared<RecordedCall>([self, index] { --self->units_[index].num_live_calls; });
  attach_post_backward(inputs, [self, index, recorded] {
    recorded->end();
    self->post_backward(index);
  });
}

void Engine::record_outputs(std::size_t index, nn::Call& call) {
  bool any = false;
  call.for_outputs([&](at::Tensor& output) {
    if (!output.requires_grad()) return;
    any = true;
    output.register_hook([self = shared_from_this(), index](const at::Tensor&) { self->pre_backward(index); });
  });
  if (any) recorded_.push_back(static_cast<int>(index));
}

// ---- backward

void Engine::pre_backward(std::size_t index) {
  begin_backward();
  Unit& unit = units_[index];
  if (unit.in_backward) return;  // another output of the same call
  unit.in_backward = true;
  unshard_and_fetch_ahead(index, backward_order_);
}

void Engine::begin_backward() {
  if (in_backward_) return;
  in_backward_ = true;
  backward_order_.expect_if_new({recorded_.rbegin(), recorded_.rend()});
  backward_order_.begin_pass();
  const auto self = shared_from_this();
  at_end_of_backward([self] { self->finish_backward(); }, [self] { self->abandon_backward(); });
}

void Engine::post_backward(std::size_t index) {
  Unit& unit = units_[index];
  unit.in_backward = false;
  const bool last_call = unit.num_live_calls == 0;
  if (unit.num_pins == 0 && (last_call || !keeps_whole_after_forward_)) unit.group->reshard();
  if (!last_call) return;  // its gradients add up here and travel once
  if (communicates_gradients_) {
    reduce(unit);
  } else {
    hold(unit);
  }
}

void Engine::finish_backward() {
  for (Unit& unit : units_) {
    unit.in_backward = false;
    if (unit.num_pins == 0) unit.group->reshard();
  }
  ahead_.reset();
  for (Unit& unit : units_) {
    if (communicates_gradients_) {
      reduce(unit);
    } else {
      hold(unit);
    }
  }
  if (communicates_gradients_) {
    advance_reductions();
    advance_reductions();
    reduce_ignored();
  }
  in_backward_ = false;
}

void Engine::reduce(Unit& unit) {
  if (!unit.group->has_gradients()) return;
  advance_reductions();
  scattering_.emplace(*unit.group, groups_);
}

void Engine::advance_reductions() {
  if (averaging_) averaging_->finish();
  averaging_.reset();
  if (!scattering_) return;
  scattering_->finish_scatter();
  averaging_ = std::move(scattering_);
  scattering_.reset();
  if (size_of(groups_.replicate) > 1) return;
  averaging_->finish();
  averaging_.reset();
}

void Engine::hold(Unit& unit) {
  const at::NoGradGuard no_grad;
  for (ShardedParam& param : unit.group->params()) {
    at::Tensor& gradient = param.whole.mutable_grad();
    const at::ScalarType dtype = unit.group->reduce_dtype(param);
    if (!gradient.defined() || gradient.scalar_type() == dtype) continue;  // autograd adds to what is there
    param.held = param.held.defined() ? param.held.add_(gradient) : gradient.to(dtype);
    gradient.reset();
  }
}

void Engine::reduce_ignored() {
  if (size_of(groups_.shard) * size_of(groups_.replicate) == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> params;
  for (const ShardedParam& param : ignored_)
    if (param.whole.requires_grad()) params.push_back(param.whole);
  while (!params.empty()) {  // one all-reduce per dtype, in the order of first appearance
    const at::ScalarType dtype = params.front().scalar_type();
    const auto rest = std::stable_partition(params.begin(), params.end(),
                                            [&](const at::Tensor& param) { return param.scalar_type() == dtype; });
    const std::vector<at::Tensor> same(params.begin(), rest);
    params.erase(params.begin(), rest);
    // Ranks may have used different parameters: each sends a flag per parameter, so that those that nobody used can
    // stay without a gradient.
    const auto num_params = static_cast<std::int64_t>(same.size());
    std::int64_t numel = num_params;
    for (const at::Tensor& param : same) numel += param.numel();
    const at::Tensor flat = at::zeros({numel}, same.front().options().requires_grad(false));
    std::int64_t offset = num_params;
    bool all_used = true;
    for (std::size_t p = 0; p < same.size(); ++p) {
      const at::Tensor& gradient = same[p].grad();
      all_used = all_used && gradient.defined();
      if (gradient.defined()) {
        flat.narrow(0, static_cast<std::int64_t>(p), 1).fill_(1);
        flat.narrow(0, offset, same[p].numel()).copy_(gradient.reshape({-1}));
      }
      offset += same[p].numel();
    }
    for (const comm::ProcessGroupPtr& group : {groups_.shard, groups_.replicate})
      if (size_of(group) > 1) comm::all_reduce(*group, flat, c10d::ReduceOp::AVG);
    const at::Tensor flags = all_used ? at::Tensor() : flat.narrow(0, 0, num_params).to(at::kFloat).cpu();
    offset = num_params;
    for (std::size_t p = 0; p < same.size(); ++p) {
      const at::Tensor mean = flat.narrow(0, offset, same[p].numel()).view(same[p].sizes());
      offset += same[p].numel();
      if (flags.defined() && flags[static_cast<std::int64_t>(p)].item<float>() == 0) continue;
      at::Tensor& gradient = same[p].mutable_grad();
      if (gradient.defined()) {
        gradient.copy_(mean);
      } else {
        gradient = mean.clone();
      }
    }
  }
}

// ---- what users and failures ask for

void Engine::abandon_pass() noexcept {
  forward_order_->abandon_pass();
  ahead_.reset();
  for (Unit& unit : units_) {
    unit.in_backward = false;
    if (unit.num_pins == 0) unit.group->reshard();
  }
}

void Engine::abandon_backward() noexcept {
  for (std::optional<Reduction>* reduction : {&averaging_, &scattering_}) {
    if (*reduction) (*reduction)->abandon();
    reduction->reset();
  }
  backward_order_.abandon_pass();
  abandon_pass();
  set_grads_to_none();
  in_backward_ = false;
}

void Engine::set_grads_to_none() {
  for (Unit& unit : units_) {
    unit.group->drop_gradients();
    for (ShardedParam& param : unit.group->params()) param.shard.mutable_grad().reset();
  }
  for (ShardedParam& param : ignored_) param.whole.mutable_grad().reset();
}

void Engine::pin(Extent extent) {
  const std::size_t begin = extent == Extent::kRootUnit ? units_.size() - 1 : 0;
  for (std::size_t u = begin; u < units_.size(); ++u) ++units_[u].num_pins;
  try {
    for (std::size_t u = begin; u < units_.size(); ++u) {
      if (u + 1 < units_.size()) units_[u + 1].group->start_unshard();
      units_[u].group->unshard();
    }
  } catch (...) {
    unpin(extent);
    throw;
  }
}

void Engine::unpin(Extent extent) noexcept {
  const std::size_t begin = extent == Extent::kRootUnit ? units_.size() - 1 : 0;
  for (std::size_t u = begin; u < units_.size(); ++u)
    if (--units_[u].num_pins == 0) units_[u].group->reshard();
}

}  // namespace lerobot::fsdp
