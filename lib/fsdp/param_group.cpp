#include "fsdp/param_group.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <set>

#include "lerobot/core/error.hpp"

namespace lerobot::fsdp {
namespace {

std::int64_t itemsize(at::ScalarType dtype) { return static_cast<std::int64_t>(c10::elementSize(dtype)); }

at::Tensor empty_slabs(std::int64_t nbytes, at::ScalarType dtype, at::Device device) {
  return at::empty({nbytes / itemsize(dtype)}, at::TensorOptions().dtype(dtype).device(device));
}

/// `dtypes` when they are all one, else nothing.
std::optional<at::ScalarType> common_dtype(const std::vector<SlabPart>& parts) {
  for (const SlabPart& part : parts)
    if (part.dtype != parts.front().dtype) return std::nullopt;
  return parts.empty() ? std::nullopt : std::optional(parts.front().dtype);
}

// LibTorch before 2.13 has no guard that can be taken off again; there the missing memory alone must do.
template <typename Storage>
void set_access_error(Storage& storage, const std::string& message) {
  if constexpr (requires { storage.clear_data_ptr_access_error_msg_(); })
    storage.release_data_and_set_meta_custom_data_ptr_error_msg_(message);
}
template <typename Storage>
void clear_access_error(Storage& storage) {
  if constexpr (requires { storage.clear_data_ptr_access_error_msg_(); }) storage.clear_data_ptr_access_error_msg_();
}

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  return *tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

}  // namespace

ParamGroup::ParamGroup(std::string name, std::vector<ShardedParam> params, const ShardGroups& groups,
                       const FsdpOptions& options)
    : name_(std::move(name)),
      access_error_(fmt::format("fsdp: a parameter of unit \"{}\" was used while it is resharded. Call the unit through "
                                "its holder, or open an Unsharded scope.",
                                name_)),
      params_(std::move(params)),
      groups_(groups),
      device_(params_.empty() ? at::Device(at::kCPU) : params_.front().whole.device()),
      reduce_dtype_(options.mp_policy.reduce_dtype) {
  const at::NoGradGuard no_grad;
  const int num_shards = size_of(groups_.shard);
  const int shard_rank = rank_of(groups_.shard);
  const at::Device home = options.cpu_offload ? at::Device(at::kCPU) : device_;
  std::vector<SlabPart> shard_parts;
  for (ShardedParam& param : params_) {
    param.sizes = param.whole.sizes().vec();
    param.shape.rows = param.sizes.front();
    param.shape.row_numel = 1;
    for (std::size_t d = 1; d < param.sizes.size(); ++d) param.shape.row_numel *= param.sizes[d];
    param.rows = mesh::rows_of_rank(param.shape.rows, shard_rank, num_shards);
    const at::ScalarType dtype = param.whole.scalar_type();
    const bool casts = options.mp_policy.param_dtype && at::isFloatingType(dtype);
    shard_parts.push_back({param.shape, dtype});
    gathered_parts_.push_back({param.shape, casts ? *options.mp_policy.param_dtype : dtype});
    converts_ = converts_ || gathered_parts_.back().dtype != dtype || home != device_;
  }
  check_uniform_dtype();
  shard_layout_ = slab_layout(shard_parts, num_shards);
  gather_layout_ = slab_layout(gathered_parts_, num_shards);
  if (const int kept = options.reshard_after_forward.num_shards(); kept > 0)
    kept_layout_ = slab_layout(gathered_parts_, kept);
  whole_layout_ = whole_layout(gathered_parts_);
  wire_dtype_ = common_dtype(gathered_parts_).value_or(at::kByte);
  one_dtype_ = common_dtype(gathered_parts_).has_value() && common_dtype(shard_parts).has_value();

  const at::ScalarType slab_dtype = common_dtype(shard_parts).value_or(at::kByte);
  slab_ = at::zeros({shard_layout_.slab_nbytes / itemsize(slab_dtype)},
                    at::TensorOptions().dtype(slab_dtype).device(home).pinned_memory(home != device_));
  whole_ = at::empty({0}, at::TensorOptions().dtype(at::kByte).device(device_));
  for (std::size_t p = 0; p < params_.size(); ++p) {
    ShardedParam& param = params_[p];
    std::vector<std::int64_t> shard_sizes = param.sizes;
    shard_sizes.front() = param.rows.size();
    param.shard = tensor_at(slab_, shard_layout_.offsets[p], shard_sizes, param.whole.scalar_type());
    param.shard.copy_(param.whole.detach().narrow(0, param.rows.begin, param.rows.size()));
    param.shard.set_requires_grad(param.whole.requires_grad());
    // From here on the module's tensor is a view of memory that comes and goes; its old values are freed.
    param.whole.set_data(tensor_at(whole_, whole_layout_.offsets[p], param.sizes, gathered_parts_[p].dtype));
    param.whole.mutable_grad().reset();
  }
  free_whole();
  expose(&ShardedParam::shard);
}

ParamGroup::~ParamGroup() { reshard(); }

void ParamGroup::check_uniform_dtype() const {
  std::set<std::string> dtypes;
  for (const ShardedParam& param : params_) {
    // A parameter already sharded keeps its original dtype in the shard.
    const at::Tensor& original = param.shard.defined() ? param.shard : param.whole;
    if (original.requires_grad()) dtypes.insert(std::string(c10::toString(original.scalar_type())));
  }
  if (dtypes.size() > 1)
    fail(ErrorKind::kConfig,
         "sharding: unit \"{}\" must have one uniform original parameter dtype among its trainable parameters, but has "
         "{}. Convert them, or let mixed precision upcast them.",
         name_, fmt::join(dtypes, ", "));
}

void ParamGroup::start_unshard() {
  if (state_ != State::kSharded) return;
  state_ = State::kGathering;
  if (params_.empty()) return;
  const at::NoGradGuard no_grad;
  const c10::DeviceGuard device_guard(device_);
  const bool from_kept = kept_.defined();
  const SlabLayout& layout = from_kept ? kept_layout_ : gather_layout_;
  const comm::ProcessGroupPtr& group = from_kept ? groups_.reshard : groups_.shard;
  if (layout.num_shards == 1 && !converts_) {
    gather_ = Gather{slab_, nullptr, &layout};
    return;
  }
  gather_ = Gather{empty_slabs(layout.slab_nbytes * layout.num_shards, wire_dtype_, device_), nullptr, &layout};
  at::Tensor mine = from_kept ? kept_ : slab_;
  if (converts_ && !from_kept) {
    const std::int64_t numel = layout.slab_nbytes / itemsize(wire_dtype_);
    mine = gather_->buffer.narrow(0, rank_of(group) * numel, numel);
    fill_send_slab(mine);
  }
  if (layout.num_shards > 1) gather_->work = comm::start_all_gather(*group, gather_->buffer, mine);
}

void ParamGroup::fill_send_slab(const at::Tensor& mine) const {
  if (one_dtype_) {  // then offsets agree when counted in elements
    mine.copy_(slab_, /*non_blocking=*/true);
    return;
  }
  for (std::size_t p = 0; p < params_.size(); ++p) {
    const at::Tensor& shard = params_[p].shard;
    tensor_at(mine, gather_layout_.offsets[p], shard.sizes(), gathered_parts_[p].dtype)
        .copy_(shard.detach(), /*non_blocking=*/true);
  }
}

void ParamGroup::unshard() {
  if (state_ == State::kWhole) return;
  start_unshard();
  if (!params_.empty()) {
    const at::NoGradGuard no_grad;
    const c10::DeviceGuard device_guard(device_);
    if (gather_->work) gather_->work->wait();
    allocate_whole();
    for (std::size_t p = 0; p < params_.size(); ++p) {
      // Written through a tensor of its own: a write through `whole` would count as an in-place change of what
      // autograd saved.
      const at::Tensor whole = tensor_at(whole_, whole_layout_.offsets[p], params_[p].sizes, gathered_parts_[p].dtype);
      copy_from_slabs(whole, gather_->buffer, *gather_->layout, gather_->layout->offsets[p], params_[p].shape);
    }
    gather_.reset();
    kept_.reset();
    expose(&ShardedParam::whole);
  }
  state_ = State::kWhole;
}

void ParamGroup::reshard() noexcept {
  if (gather_) {
    try {  // the buffer must outlive the transfer into it; every rank has issued this gather, so it ends
      if (gather_->work) gather_->work->wait();
    } catch (const std::exception&) {  // what failed here fails again, and is reported, at the next collective
    }
    gather_.reset();
  }
  kept_.reset();
  if (state_ == State::kWhole && !params_.empty()) {
    free_whole();
    expose(&ShardedParam::shard);
  }
  state_ = State::kSharded;
}

void ParamGroup::reshard_after_forward() {
  at::Tensor kept;
  if (!kept_layout_.offsets.empty() && state_ == State::kWhole) {
    const at::NoGradGuard no_grad;
    kept = empty_slabs(kept_layout_.slab_nbytes, wire_dtype_, device_);
    for (std::size_t p = 0; p < params_.size(); ++p) {
      const RowShape& shape = params_[p].shape;
      const mesh::Rows rows = mesh::rows_of_rank(shape.rows, rank_of(groups_.reshard), kept_layout_.num_shards);
      const at::ScalarType dtype = gathered_parts_[p].dtype;
      const std::int64_t begin = rows.begin * shape.row_numel * itemsize(dtype);
      tensor_at(kept, kept_layout_.offsets[p], {rows.size() * shape.row_numel}, dtype)
          .copy_(tensor_at(whole_, whole_layout_.offsets[p] + begin, {rows.size() * shape.row_numel}, dtype));
    }
  }
  reshard();
  kept_ = std::move(kept);
}

void ParamGroup::allocate_whole() {
  c10::StorageImpl& storage = storage_of(whole_);
  clear_access_error(storage);
  storage.set_data_ptr_noswap(storage.allocator()->allocate(static_cast<std::size_t>(whole_layout_.nbytes)));
  storage.set_nbytes(static_cast<std::size_t>(whole_layout_.nbytes));
}

void ParamGroup::free_whole() noexcept {
  c10::StorageImpl& storage = storage_of(whole_);
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, device_));
  storage.set_nbytes(static_cast<std::size_t>(0));
  set_access_error(storage, access_error_);
}

void ParamGroup::expose(at::Tensor ShardedParam::*form) {
  for (ShardedParam& param : params_)
    for (const ShardedParam::Place& place : param.places)
      parameter_entries(*place.module)[place.index].value() = param.*form;
}

void ParamGroup::follow_requires_grad() {
  bool changed = false;
  for (ShardedParam& param : params_) {
    if (param.whole.requires_grad() == param.shard.requires_grad()) continue;
    param.whole.set_requires_grad(param.shard.requires_grad());
    changed = true;
  }
  if (changed) check_uniform_dtype();
}

bool ParamGroup::has_gradients() const {
  return std::any_of(params_.begin(), params_.end(), [](const ShardedParam& param) {
    return param.held.defined() || param.whole.grad().defined();
  });
}

void ParamGroup::drop_gradients() {
  for (ShardedParam& param : params_) {
    param.whole.mutable_grad().reset();
    param.held.reset();
  }
}

void ParamGroup::restore() {
  const at::NoGradGuard no_grad;
  reshard();
  drop_gradients();
  const int num_shards = size_of(groups_.shard);
  for (std::size_t p = 0; p < params_.size(); ++p) {
    ShardedParam& param = params_[p];
    const at::ScalarType dtype = param.shard.scalar_type();
    const SlabPart part{param.shape, dtype};
    const SlabLayout layout = slab_layout({&part, 1}, num_shards);
    at::Tensor buffer = empty_slabs(layout.slab_nbytes * num_shards, dtype, device_);
    const std::int64_t numel = layout.slab_nbytes / itemsize(dtype);
    const at::Tensor mine = buffer.narrow(0, rank_of(groups_.shard) * numel, numel);
    mine.narrow(0, 0, param.shard.numel()).copy_(param.shard.detach().reshape({-1}));
    if (num_shards > 1) comm::all_gather(*groups_.shard, buffer, mine);
    const at::Tensor whole = at::empty(param.sizes, buffer.options());
    copy_from_slabs(whole, buffer, layout, 0, param.shape);
    param.whole.set_data(whole);
    param.whole.set_requires_grad(param.shard.requires_grad());
  }
  expose(&ShardedParam::whole);
}

void ParamGroup::abandon_module() noexcept {
  reshard();
  expose(&ShardedParam::whole);
  set_access_error(storage_of(whole_),
                   "fsdp: a parameter was used after its ShardedModule was destroyed. Call release() first to keep the "
                   "weights. Unit: " + name_);
}

}  // namespace lerobot::fsdp
