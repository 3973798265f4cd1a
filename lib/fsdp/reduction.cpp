#include "fsdp/reduction.hpp"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "lerobot/core/error.hpp"

namespace lerobot::fsdp {
namespace {

c10d::ReduceOp reduce_op(const DivideFactors& factors) {
  return factors.by_collective ? c10d::ReduceOp::AVG : c10d::ReduceOp::SUM;
}

/// The whole gradient of all micro-batches since the last reduction; leaves the parameter without.
at::Tensor take_gradient(ShardedParam& param) {
  at::Tensor gradient = std::exchange(param.whole.mutable_grad(), at::Tensor());
  if (gradient.defined() && gradient.layout() != at::kStrided)
    fail(ErrorKind::kConfig, "sharding: parameter \"{}\" has a sparse gradient; build its embedding with sparse=false.",
         param.fqn);
  if (!param.held.defined()) return gradient.contiguous();
  const at::Tensor held = std::exchange(param.held, at::Tensor());
  return gradient.defined() ? held.add_(gradient) : held;
}

}  // namespace

Reduction::Reduction(ParamGroup& group, const ShardGroups& groups) : groups_(groups) {
  const at::NoGradGuard no_grad;
  const int num_shards = size_of(groups_.shard);
  for (ShardedParam& param : group.params())
    if (param.whole.grad().defined() || param.held.defined()) params_.push_back(&param);
  dtype_ = group.reduce_dtype(*params_.front());
  factors_ = divide_factors(dtype_, num_shards * size_of(groups_.replicate));

  std::vector<SlabPart> parts;
  for (const ShardedParam* param : params_) parts.push_back({param->shape, dtype_});
  layout_ = slab_layout(parts, num_shards);
  const std::int64_t numel = layout_.slab_nbytes / static_cast<std::int64_t>(c10::elementSize(dtype_));
  const auto options = at::TensorOptions().dtype(dtype_).device(group.device());
  packed_ = at::empty({num_shards * numel}, options);
  for (std::size_t p = 0; p < params_.size(); ++p) {
    const std::int64_t end = p + 1 < params_.size() ? layout_.offsets[p + 1] : layout_.slab_nbytes;
    copy_to_slabs(take_gradient(*params_[p]), packed_, layout_, layout_.offsets[p], end, params_[p]->shape, dtype_);
  }
  if (factors_.before != 1) packed_.div_(factors_.before);
  if (num_shards == 1) {
    mine_ = packed_;
    return;
  }
  mine_ = at::empty({numel}, options);
  work_ = comm::start_reduce_scatter(*groups_.shard, mine_, packed_, reduce_op(factors_));
}

void Reduction::finish_scatter() {
  if (work_) work_->wait();
  work_.reset();
  packed_.reset();
  if (size_of(groups_.replicate) > 1)
    work_ = comm::start_all_reduce(*groups_.replicate, mine_, reduce_op(factors_));
}

void Reduction::finish() {
  if (work_) work_->wait();
  work_.reset();
  const at::NoGradGuard no_grad;
  if (factors_.after != 1) mine_.div_(factors_.after);
  const at::Tensor& first = params_.front()->shard;
  const at::Tensor gradients = mine_.to(first.options());  // itself, if nothing is to convert
  const auto from = static_cast<std::int64_t>(c10::elementSize(dtype_));
  const auto to = static_cast<std::int64_t>(c10::elementSize(first.scalar_type()));
  for (std::size_t p = 0; p < params_.size(); ++p) {
    at::Tensor& shard = params_[p]->shard;
    const at::Tensor gradient = tensor_at(gradients, layout_.offsets[p] / from * to, shard.sizes(), shard.scalar_type());
    if (shard.grad().defined()) {
      shard.mutable_grad().add_(gradient);
    } else {
      shard.mutable_grad() = gradient;
    }
  }
  mine_.reset();
}

void Reduction::abandon() noexcept {
  try {
    if (work_) work_->wait();
  } catch (const std::exception&) {  // the exception that led here is the one to report
  }
  work_.reset();
}

}  // namespace lerobot::fsdp
