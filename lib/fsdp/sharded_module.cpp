#include "lerobot/fsdp/sharded_module.hpp"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fsdp/engine.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::fsdp {
namespace {

constexpr std::int64_t kGatherBlockNbytes = std::int64_t{16} << 20;

mesh::TensorSlice slice_of(const ShardedParam& param, bool is_sharded) {
  const at::Tensor& whole = param.whole;
  return {param.shard, is_sharded ? param.sizes : whole.sizes().vec(), is_sharded ? param.rows.begin : 0, is_sharded};
}

/// Finds the parameter behind an entry of a module, whichever of its two forms stands there now.
class ParamIndex {
 public:
  explicit ParamIndex(const Engine& engine) {
    for (const Unit& unit : engine.units())
      for (const ShardedParam& param : unit.group->params())
        for (const at::Tensor* form : {&param.shard, &param.whole}) sharded_[form->unsafeGetTensorImpl()] = &param;
    for (const ShardedParam& param : engine.ignored()) ignored_[param.whole.unsafeGetTensorImpl()] = &param;
  }
  [[nodiscard]] const ShardedParam* sharded(const at::Tensor& entry) const { return find(sharded_, entry); }
  [[nodiscard]] const ShardedParam* ignored(const at::Tensor& entry) const { return find(ignored_, entry); }

 private:
  using Map = std::unordered_map<const c10::TensorImpl*, const ShardedParam*>;
  static const ShardedParam* find(const Map& map, const at::Tensor& entry) {
    const auto at = map.find(entry.unsafeGetTensorImpl());
    return at == map.end() ? nullptr : at->second;
  }
  Map sharded_;
  Map ignored_;
};

/// Rows that a provider gave, checked.
at::Tensor rows_from(const RowsProvider& rows_of, const std::string& fqn, mesh::Rows rows, const at::Tensor& into) {
  at::Tensor values = rows_of(fqn, rows);
  if (values.defined() && values.sizes() != into.sizes())
    fail(ErrorKind::kCheckpoint, "load: rows [{}, {}) of \"{}\" have the shape {}, expected {}.", rows.begin, rows.end, fqn,
         c10::str(values.sizes()), c10::str(into.sizes()));
  return values;
}

void load_one(const RowsProvider& rows_of, const std::string& fqn, mesh::Rows rows, const at::Tensor& into) {
  if (rows.size() == 0) return;
  const at::Tensor values = rows_from(rows_of, fqn, rows, into);
  if (values.defined()) into.copy_(values);
}

at::Tensor gather_rows(const ShardedParam& param, const ShardGroups& groups, at::Device device) {
  const at::NoGradGuard no_grad;
  const int num_shards = size_of(groups.shard);
  const bool receives = rank_of(groups.shard) == 0;
  const at::ScalarType dtype = param.shard.scalar_type();
  const auto itemsize = static_cast<std::int64_t>(c10::elementSize(dtype));
  const std::int64_t piece_numel = mesh::chunk_rows(param.shape.rows, num_shards) * param.shape.row_numel;
  const std::int64_t block_numel = std::max<std::int64_t>(1, kGatherBlockNbytes / itemsize / num_shards);
  at::Tensor whole;
  if (receives) whole = at::empty(param.sizes, at::TensorOptions().dtype(dtype).device(at::kCPU));
  for (std::int64_t begin = 0; begin < piece_numel; begin += block_numel) {
    const std::int64_t numel = std::min(block_numel, piece_numel - begin);
    // Past this rank's rows its slab goes on, in zeros, to the length of a full piece.
    const at::Tensor mine = tensor_at(param.shard, begin * itemsize, {numel}, dtype).to(device);
    at::Tensor all = mine;
    if (num_shards > 1) {
      all = at::empty({num_shards * numel}, mine.options());
      comm::all_gather(*groups.shard, all, mine);
    }
    if (!receives) continue;
    for (int rank = 0; rank < num_shards; ++rank) {
      const mesh::Rows rows = mesh::rows_of_rank(param.shape.rows, rank, num_shards);
      const std::int64_t valid = std::min(numel, rows.size() * param.shape.row_numel - begin);
      if (valid <= 0) continue;
      whole.view({-1})
          .narrow(0, rows.begin * param.shape.row_numel + begin, valid)
          .copy_(all.narrow(0, rank * numel, valid));
    }
  }
  return whole;
}

}  // namespace

ShardedModule::ShardedModule(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
ShardedModule::ShardedModule(ShardedModule&&) noexcept = default;

ShardedModule& ShardedModule::operator=(ShardedModule&& other) noexcept {
  std::swap(engine_, other.engine_);
  return *this;
}

ShardedModule::~ShardedModule() {
  if (!engine_) return;
  engine_->detach();
  for (Unit& unit : engine_->units()) unit.group->abandon_module();
}

const std::shared_ptr<torch::nn::Module>& ShardedModule::module() const { return engine_->module(); }

std::vector<UnitInfo> ShardedModule::units() const {
  std::vector<UnitInfo> infos;
  for (const Unit& unit : engine_->units()) infos.push_back(unit.info);
  return infos;
}

mesh::StateDict ShardedModule::parameters() const {
  const ParamIndex index(*engine_);
  std::unordered_set<const ShardedParam*> seen;
  mesh::StateDict result;
  for (const NamedEntry& named : state_entries(*engine_->module())) {
    if (named.is_buffer) continue;
    const ShardedParam* sharded = index.sharded(named.tensor);
    const ShardedParam* param = sharded ? sharded : index.ignored(named.tensor);
    if (param && seen.insert(param).second) result.emplace_back(param->fqn, slice_of(*param, sharded != nullptr));
  }
  return result;
}

mesh::StateDict ShardedModule::state_dict() const {
  const ParamIndex index(*engine_);
  mesh::StateDict result;
  for (const NamedEntry& named : state_entries(*engine_->module())) {
    const ShardedParam* param = named.is_buffer ? nullptr : index.sharded(named.tensor);
    mesh::TensorSlice slice = param ? slice_of(*param, true)
                                    : mesh::TensorSlice{named.tensor, named.tensor.sizes().vec(), 0, false};
    slice.local = slice.local.detach();
    result.emplace_back(named.fqn, std::move(slice));
  }
  return result;
}

at::Tensor ShardedModule::gather_full(std::string_view fqn) {
  const ParamIndex index(*engine_);
  for (const NamedEntry& named : state_entries(*engine_->module())) {
    if (named.fqn != fqn) continue;
    if (const ShardedParam* param = named.is_buffer ? nullptr : index.sharded(named.tensor))
      return gather_rows(*param, engine_->groups(), param->whole.device());
    return rank_of(engine_->groups().shard) == 0 ? named.tensor.detach().cpu() : at::Tensor();
  }
  fail(ErrorKind::kConfig, "gather_full: the module has no parameter or buffer \"{}\".", fqn);
}

void ShardedModule::load(const RowsProvider& rows_of) {
  const at::NoGradGuard no_grad;
  const ParamIndex index(*engine_);
  std::unordered_set<const c10::TensorImpl*> seen;  // a tied parameter is loaded by its first name
  for (const NamedEntry& named : state_entries(*engine_->module())) {
    if (!seen.insert(named.tensor.unsafeGetTensorImpl()).second) continue;
    if (const ShardedParam* param = named.is_buffer ? nullptr : index.sharded(named.tensor)) {
      load_one(rows_of, param->fqn, param->rows, param->shard.detach());
    } else {
      load_one(rows_of, named.fqn, {0, named.tensor.dim() == 0 ? 1 : named.tensor.size(0)}, named.tensor.detach());
    }
  }
}

void ShardedModule::set_grads_to_none() { engine_->set_grads_to_none(); }

std::shared_ptr<torch::nn::Module> ShardedModule::release() && {
  const std::shared_ptr<Engine> engine = std::exchange(engine_, nullptr);
  engine->detach();
  for (Unit& unit : engine->units()) unit.group->restore();
  return engine->module();
}

NoSync::NoSync(ShardedModule& sharded)
    : engine_(sharded.engine_), before_(engine_->communicates_gradients()) {
  engine_->set_communicates_gradients(false);
}
NoSync::~NoSync() { engine_->set_communicates_gradients(before_); }

Unsharded::Unsharded(ShardedModule& sharded, Extent extent) : engine_(sharded.engine_), extent_(extent) {
  engine_->pin(extent_);
}
Unsharded::~Unsharded() { engine_->unpin(extent_); }

}  // namespace lerobot::fsdp
