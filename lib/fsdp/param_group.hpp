#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fsdp/module_tree.hpp"
#include "fsdp/slab.hpp"
#include "lerobot/comm/collectives.hpp"
#include "lerobot/fsdp/options.hpp"
#include "lerobot/mesh/shard.hpp"

namespace lerobot::fsdp {

/// A group that is not there is one of this rank alone.
inline int size_of(const comm::ProcessGroupPtr& group) { return group ? group->getSize() : 1; }
inline int rank_of(const comm::ProcessGroupPtr& group) { return group ? group->getRank() : 0; }

/// One parameter of a unit, in its two forms.
struct ShardedParam {
  /// Where a module keeps it: an index into `parameter_entries`, which only ever grows.
  struct Place {
    std::shared_ptr<torch::nn::Module> module;
    std::size_t index;
  };
  std::string fqn;
  std::vector<Place> places;
  std::vector<std::int64_t> sizes;  ///< of the whole
  RowShape shape;
  mesh::Rows rows;    ///< this rank's
  at::Tensor shard;   ///< the leaf that the optimizer knows; its rows lie in the unit's slab
  at::Tensor whole;   ///< the module's own tensor; has data only while the unit is gathered
  at::Tensor held;    ///< whole gradient kept by NoSync, where it is reduced in another dtype than it is computed in
};

/// The parameters of one wrap unit at run time: gathers them, frees them, and owns the memory of both forms.
///
/// Every rank's rows of all parameters lie in one slab, so sending copies nothing. What arrives is a slab buffer; each
/// parameter is copied from it once, to where its module expects it, and the buffer is freed. The module's tensors all
/// lie in one storage whose memory comes and goes, while the tensors stay: members like `Linear::weight`, views saved
/// by autograd and leaves see the gathered values without being told.
class ParamGroup {
 public:
  enum class State {
    kSharded,    ///< only this rank's rows are there
    kGathering,  ///< an all-gather is under way
    kWhole,
  };

  ParamGroup(std::string name, std::vector<ShardedParam> params, const ShardGroups& groups, const FsdpOptions& options);
  ~ParamGroup();
  ParamGroup(const ParamGroup&) = delete;
  ParamGroup& operator=(const ParamGroup&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::vector<ShardedParam>& params() { return params_; }
  [[nodiscard]] const std::vector<ShardedParam>& params() const { return params_; }
  [[nodiscard]] std::int64_t shard_nbytes() const { return shard_layout_.slab_nbytes; }
  [[nodiscard]] std::int64_t gathered_nbytes() const { return whole_layout_.nbytes; }
  [[nodiscard]] const at::Device& device() const { return device_; }

  /// Issues the all-gather; nothing if it is under way or done.
  void start_unshard();
  /// Returns with whole parameters; issues the all-gather first if need be.
  void unshard();
  /// Frees the whole parameters, and what is left of a gather that nobody waited for. Never throws.
  void reshard() noexcept;
  /// The same, but keeps what a numeric `reshard_after_forward` asks for.
  void reshard_after_forward();

  /// Parameters follow their shards in whether they want a gradient, so that freezing works at any time.
  /// Throws: Error{kConfig} when those that do have several dtypes.
  void follow_requires_grad();
  [[nodiscard]] bool has_gradients() const;
  void drop_gradients();
  /// Element type in which the gradient of `param` travels.
  [[nodiscard]] at::ScalarType reduce_dtype(const ShardedParam& param) const {
    return reduce_dtype_.value_or(param.shard.scalar_type());
  }

  /// Makes the parameters ordinary again, whole and in their original dtype. Collective: over the shard group.
  void restore();
  /// Leaves the module's tensors empty; touching one from now on says so.
  void abandon_module() noexcept;

 private:
  struct Gather {
    at::Tensor buffer;
    comm::WorkPtr work;
    const SlabLayout* layout;
  };

  void fill_send_slab(const at::Tensor& mine) const;
  void allocate_whole();
  void free_whole() noexcept;
  void expose(at::Tensor ShardedParam::*form);
  void check_uniform_dtype() const;

  std::string name_;
  std::string access_error_;                 ///< for whoever touches a parameter that is not there
  std::vector<ShardedParam> params_;
  ShardGroups groups_;
  at::Device device_;                        ///< where the unit computes
  std::vector<SlabPart> gathered_parts_;     ///< shapes, and dtypes while gathered
  SlabLayout shard_layout_;                  ///< of the slab in original dtypes
  SlabLayout gather_layout_;                 ///< of the slab as it is sent
  SlabLayout kept_layout_;                   ///< of what is kept after forward, over `groups_.reshard`
  WholeLayout whole_layout_;
  at::ScalarType wire_dtype_ = at::kByte;    ///< of a gather; bytes if the parameters have several
  std::optional<at::ScalarType> reduce_dtype_;
  bool converts_ = false;                    ///< the slab can't be sent as it is: other dtype or device
  bool one_dtype_ = true;                    ///< of all shards, and of all gathered parameters
  at::Tensor slab_;                          ///< this rank's rows
  at::Tensor kept_;                          ///< what a numeric reshard keeps between forward and backward
  at::Tensor whole_;                         ///< bytes behind all `ShardedParam::whole`
  std::optional<Gather> gather_;
  State state_ = State::kSharded;
};

}  // namespace lerobot::fsdp
