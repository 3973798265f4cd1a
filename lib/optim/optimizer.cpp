#include "lerobot/optim/optimizer.hpp"

#include <fmt/ranges.h>
#include <torch/torch.h>

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lerobot/core/error.hpp"
#include "optim/fused_update.hpp"

namespace lerobot::optim {

namespace {

void check_options(OptimizerKind kind, const GroupOptions& options) {
  const auto require = [](bool ok, std::string_view name, double value, std::string_view expected) {
    if (!ok) fail(ErrorKind::kConfig, "optimizer: {} is {}, expected {}.", name, value, expected);
  };
  require(options.lr >= 0.0, "lr", options.lr, "0 or more");
  require(options.weight_decay >= 0.0, "weight_decay", options.weight_decay, "0 or more");
  if (kind == OptimizerKind::kSgd) {
    require(options.momentum >= 0.0, "momentum", options.momentum, "0 or more");
    if (options.nesterov && !(options.momentum > 0.0 && options.dampening == 0.0))
      fail(ErrorKind::kConfig,
           "optimizer: nesterov needs momentum above 0 and dampening 0; got momentum={}, dampening={}.",
           options.momentum, options.dampening);
    return;
  }
  require(options.eps >= 0.0, "eps", options.eps, "0 or more");
  require(options.beta1 >= 0.0 && options.beta1 < 1.0, "betas[0]", options.beta1, "0 <= beta < 1");
  require(options.beta2 >= 0.0 && options.beta2 < 1.0, "betas[1]", options.beta2, "0 <= beta < 1");
}

void check_param(const Parameter& param) {
  const at::Tensor& tensor = param.value.local;
  if (!tensor.defined() || !tensor.is_leaf() || !tensor.is_floating_point())
    fail(ErrorKind::kConfig, "optimizer: parameter \"{}\" is not a floating-point leaf tensor.", param.name);
  if (!tensor.is_non_overlapping_and_dense())
    fail(ErrorKind::kConfig, "optimizer: parameter \"{}\" has holes or overlaps in memory; make it contiguous.",
         param.name);
}

/// The gradient in the layout and dtype of its parameter: kernels walk both as flat arrays.
at::Tensor matching_grad(const at::Tensor& param) {
  const at::Tensor& grad = param.grad();
  if (grad.scalar_type() == param.scalar_type() && grad.strides() == param.strides()) return grad;
  return at::empty_like(param).copy_(grad);
}

void advance(const at::Tensor& step) {
  if (step.is_cpu())
    *step.mutable_data_ptr<float>() += 1.0F;  // a dispatched add costs a microsecond per parameter
  else
    step.add_(1.0);
}

}  // namespace

ParamGroup make_group(const GroupOptions& options, const std::vector<std::pair<std::string, at::Tensor>>& params) {
  ParamGroup group{options, {}};
  group.params.reserve(params.size());
  for (const auto& [name, tensor] : params)
    group.params.push_back({name, {tensor, tensor.sizes().vec(), 0, false}, {}});
  return group;
}

Optimizer::Optimizer(OptimizerKind kind, std::vector<ParamGroup> groups)
    : kind_(kind), groups_(std::move(groups)), update_(std::make_unique<FusedUpdate>()) {
  std::set<std::string_view> names;
  for (const auto& group : groups_) {
    check_options(kind_, group.options);
    for (const auto& param : group.params) {
      check_param(param);
      if (!names.insert(param.name).second)
        fail(ErrorKind::kConfig, "optimizer: parameter \"{}\" occurs twice in the groups.", param.name);
    }
  }
}

Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;
Optimizer::~Optimizer() = default;

bool Optimizer::keeps_state(const ParamGroup& group) const {
  return kind_ != OptimizerKind::kSgd || group.options.momentum != 0.0;
}

void Optimizer::create_state(const ParamGroup& group, Parameter& param) const {
  const at::Tensor& value = param.value.local;
  const auto zeros = [&] { return at::zeros_like(value, value.options().requires_grad(false)); };
  if (kind_ == OptimizerKind::kSgd) {
    param.state.momentum_buffer = zeros();
    return;
  }
  param.state.step = at::zeros({}, value.options().dtype(at::kFloat).requires_grad(false));
  param.state.exp_avg = zeros();
  param.state.exp_avg_sq = zeros();
  if (group.options.amsgrad) param.state.max_exp_avg_sq = zeros();
}

void Optimizer::step() {
  const at::NoGradGuard no_grad;
  using Key = std::tuple<c10::DeviceType, c10::DeviceIndex, at::ScalarType, bool>;
  for (auto& group : groups_) {
    std::map<Key, std::vector<Due>> batches;
    for (auto& param : group.params) {
      const at::Tensor& value = param.value.local;
      if (!value.grad().defined()) continue;
      const bool is_first =
          keeps_state(group) && !(param.state.step.defined() || param.state.momentum_buffer.defined());
      if (is_first) create_state(group, param);
      if (param.state.step.defined()) advance(param.state.step);
      if (value.numel() == 0) continue;  // a rank without rows of this parameter still counts its updates
      const bool sets_buffer = is_first && kind_ == OptimizerKind::kSgd;
      batches[{value.device().type(), value.device().index(), value.scalar_type(), sets_buffer}].push_back(
          {&param, matching_grad(value), sets_buffer});
    }
    for (const auto& [key, due] : batches) update_->run(kind_, group.options, due);
  }
}

void Optimizer::zero_grad() {
  for (auto& group : groups_)
    for (auto& param : group.params) param.value.local.mutable_grad().reset();
}

void Optimizer::rebind(const mesh::StateDict& params) {
  std::unordered_map<std::string_view, const mesh::TensorSlice*> by_name;
  for (const auto& [name, slice] : params) by_name.emplace(name, &slice);
  const at::NoGradGuard no_grad;
  for (auto& group : groups_)
    for (auto& param : group.params) {
      const auto found = by_name.find(param.name);
      if (found == by_name.end())
        fail(ErrorKind::kConfig,
             "optimizer: parameter \"{}\" cannot be mapped to the sharded model, which has no "
             "parameter of that name.",
             param.name);
      const mesh::TensorSlice& slice = *found->second;
      if (slice.global_shape != param.value.global_shape)
        fail(ErrorKind::kConfig,
             "optimizer: parameter \"{}\" cannot be mapped to the sharded model: shape [{}] before, "
             "[{}] after.",
             param.name, fmt::join(param.value.global_shape, ", "), fmt::join(slice.global_shape, ", "));
      ParamState& state = param.state;
      for (at::Tensor* tensor : {&state.exp_avg, &state.exp_avg_sq, &state.max_exp_avg_sq, &state.momentum_buffer}) {
        if (!tensor->defined() || !slice.is_sharded) continue;
        if (param.value.is_sharded)
          fail(ErrorKind::kInternal,
               "optimizer: parameter \"{}\" was sharded before and has state; it cannot be cut "
               "again.",
               param.name);
        *tensor = tensor->narrow(0, slice.row_begin, slice.local.size(0)).clone();
      }
      param.value = slice;
      check_param(param);
    }
}

std::vector<NamedGradient> Optimizer::gradients() const {
  std::vector<NamedGradient> out;
  for (const auto& group : groups_)
    for (const auto& param : group.params)
      if (param.value.local.grad().defined())
        out.push_back({param.name, param.value.local.grad(), param.value.is_sharded});
  return out;
}

}  // namespace lerobot::optim
