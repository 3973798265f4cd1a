#include "optim/fused_update.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace lerobot::optim {

namespace {

// Longest vector of any kernel: 32 elements (bfloat16 in AVX-512). A tensor's last `numel % kLanes` elements are its
// tail.
constexpr std::int64_t kLanes = 32;

using AdamKernel = void(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                        double, double, double, double, double, bool, bool, const std::optional<at::Tensor>&,
                        const std::optional<at::Tensor>&);

std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.mutable_data_ptr()); }

}  // namespace

/// The operands of a kernel, each a list over parameters: [0] parameters, [1] gradients, then the state.
struct FusedUpdate::Lists {
  std::vector<std::vector<at::Tensor>> operands;
  std::vector<at::Tensor> steps;
};

struct FusedUpdate::Tail {
  std::size_t param;
  std::int64_t begin;
  std::int64_t count;
};

// Tails in the order of their step counts, so that those with the same count can share one padded tensor.
std::vector<FusedUpdate::Tail> FusedUpdate::find_tails(const Lists& lists, const std::vector<Due>& due) const {
  std::vector<Tail> tails;
  const auto& params = lists.operands.front();
  for (std::size_t i = 0; i < params.size(); ++i) {
    const std::int64_t count = params[i].numel() % kLanes;
    if (count != 0) tails.push_back({i, params[i].numel() - count, count});
  }
  if (!lists.steps.empty()) {
    const auto step = [&](const Tail& tail) { return *due[tail.param].param->state.step.const_data_ptr<float>(); };
    std::stable_sort(tails.begin(), tails.end(), [&](const Tail& a, const Tail& b) { return step(a) < step(b); });
  }
  return tails;
}

void FusedUpdate::append_padded_tails(Lists& lists, const std::vector<Tail>& tails, const std::vector<Due>& due) {
  const auto num_operands = static_cast<std::int64_t>(lists.operands.size());
  const auto num_slots = static_cast<std::int64_t>(tails.size());
  const at::Tensor& like = lists.operands.front().front();
  if (!padded_.defined() || padded_.scalar_type() != like.scalar_type() || padded_.size(0) != num_operands ||
      padded_.size(1) < num_slots * kLanes)
    padded_ = at::zeros({num_operands, num_slots * kLanes}, like.options().requires_grad(false));
  const auto itemsize = static_cast<std::int64_t>(like.element_size());
  for (std::int64_t k = 0; k < num_operands; ++k) {
    const auto& operand = lists.operands[static_cast<std::size_t>(k)];
    std::byte* slot = bytes_of(padded_) + k * padded_.size(1) * itemsize;
    for (const Tail& tail : tails) {
      std::memcpy(slot, bytes_of(operand[tail.param]) + tail.begin * itemsize,
                  static_cast<std::size_t>(tail.count * itemsize));
      slot += kLanes * itemsize;
    }
  }
  const auto step_of = [&](std::int64_t slot) -> const at::Tensor& {
    return due[tails[static_cast<std::size_t>(slot)].param].param->state.step;
  };
  const auto same_step = [&](std::int64_t a, std::int64_t b) {
    return lists.steps.empty() || *step_of(a).const_data_ptr<float>() == *step_of(b).const_data_ptr<float>();
  };
  const bool has_steps = !lists.steps.empty();
  for (std::int64_t begin = 0, end = 0; begin < num_slots; begin = end) {
    while (end < num_slots && same_step(begin, end)) ++end;
    for (std::int64_t k = 0; k < num_operands; ++k)
      lists.operands[static_cast<std::size_t>(k)].push_back(
          padded_.select(0, k).narrow(0, begin * kLanes, (end - begin) * kLanes));
    if (has_steps) lists.steps.push_back(step_of(begin));
  }
}

void FusedUpdate::copy_back(const Lists& lists, const std::vector<Tail>& tails) const {
  const auto itemsize = static_cast<std::int64_t>(padded_.element_size());
  for (std::size_t k = 0; k < lists.operands.size(); ++k) {
    if (k == 1) continue;  // gradients are read only
    const std::byte* slot = bytes_of(padded_) + static_cast<std::int64_t>(k) * padded_.size(1) * itemsize;
    for (const Tail& tail : tails) {
      std::memcpy(bytes_of(lists.operands[k][tail.param]) + tail.begin * itemsize, slot,
                  static_cast<std::size_t>(tail.count * itemsize));
      slot += kLanes * itemsize;
    }
  }
}

void FusedUpdate::run(OptimizerKind kind, const GroupOptions& options, const std::vector<Due>& due) {
  const bool is_adam = kind != OptimizerKind::kSgd;
  const bool has_buffer = !is_adam && options.momentum != 0.0;
  Lists lists;
  auto& operands = lists.operands;
  operands.resize(is_adam ? (options.amsgrad ? 5 : 4) : (has_buffer ? 3 : 2));
  for (const auto& [param, grad, is_first] : due) {
    const ParamState& state = param->state;
    operands[0].push_back(param->value.local);
    operands[1].push_back(grad);
    if (is_adam) {
      operands[2].push_back(state.exp_avg);
      operands[3].push_back(state.exp_avg_sq);
      if (options.amsgrad) operands[4].push_back(state.max_exp_avg_sq);
      lists.steps.push_back(state.step);
    } else if (has_buffer) {
      operands[2].push_back(state.momentum_buffer);
    }
  }
  std::vector<Tail> tails;
  if (operands[0].front().is_cpu()) tails = find_tails(lists, due);  // other devices compute element by element
  if (!tails.empty()) append_padded_tails(lists, tails, due);
  if (is_adam) {
    const std::vector<at::Tensor> no_max;
    const auto& max_sq = options.amsgrad ? operands[4] : no_max;
    const auto kernel = kind == OptimizerKind::kAdam ? static_cast<AdamKernel*>(at::_fused_adam_)
                                                     : static_cast<AdamKernel*>(at::_fused_adamw_);
    kernel(operands[0], operands[1], operands[2], operands[3], max_sq, lists.steps, options.lr, options.beta1,
           options.beta2, options.weight_decay, options.eps, options.amsgrad, options.maximize, std::nullopt,
           std::nullopt);
  } else {
    const std::vector<at::Tensor> no_buffers;
    at::_fused_sgd_(operands[0], operands[1], has_buffer ? operands[2] : no_buffers, options.weight_decay,
                    options.momentum, options.lr, options.dampening, options.nesterov, options.maximize,
                    due.front().is_first);
  }
  if (!tails.empty()) copy_back(lists, tails);
}

}  // namespace lerobot::optim
