#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/json.hpp"
#include "lerobot/mesh/tensor_slice.hpp"
#include "lerobot/optim/clip.hpp"

namespace lerobot::optim {

class FusedUpdate;

enum class OptimizerKind {
  kAdam,   ///< weight decay as an L2 term in the gradient
  kAdamW,  ///< decoupled weight decay
  kSgd,
};

/// Settings of one group; those of the other kinds are ignored.
struct GroupOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;
  double momentum = 0.0;  ///< kSgd, as the next two
  double dampening = 0.0;
  bool nesterov = false;
  bool maximize = false;
  std::optional<double> initial_lr = std::nullopt;  ///< set once a schedule is attached
};

/// What an optimizer keeps for one parameter. Undefined until its first update, and what a kind does not need.
struct ParamState {
  at::Tensor step;  ///< float32 scalar, counts updates
  at::Tensor exp_avg;
  at::Tensor exp_avg_sq;
  at::Tensor max_exp_avg_sq;   ///< with amsgrad
  at::Tensor momentum_buffer;  ///< kSgd with momentum
};

/// A parameter: `value.local` is the leaf whose `grad()` the update reads, whole or this rank's rows.
struct Parameter {
  std::string name;  ///< FQN
  mesh::TensorSlice value;
  ParamState state;
};

struct ParamGroup {
  GroupOptions options;
  std::vector<Parameter> params;
};

/// A group of whole parameters, in the order of `params`.
[[nodiscard]] ParamGroup make_group(const GroupOptions& options,
                                    const std::vector<std::pair<std::string, at::Tensor>>& params);

/// How entries of the optimizer's state are named.
enum class StateNaming {
  kIndex,  ///< "state/3/exp_avg": counting through all groups; optimizer_state.safetensors
  kFqn,    ///< "state.<fqn>.exp_avg"; shard checkpoints
};

/// Adam, AdamW or SGD over groups of parameters that are whole or sharded by rows.
///
/// The update of an element does not depend on where its tensor was cut: a row on four ranks gets the bits that it gets
/// in the whole tensor. Kernels are ATen's fused ones. They treat the last elements of a tensor, those that do not
/// fill a vector, with scalar instructions that round differently; here these elements are updated in a padded copy.
///
/// Not collective: every rank updates what it holds.
/// Source: PyTorch `torch.optim.AdamW(fused=True)`, `Adam`, `SGD`.
class Optimizer {
 public:
  /// Throws: Error{kConfig} for a name that occurs twice, a parameter that is not a dense leaf, or numbers out of
  /// range.
  Optimizer(OptimizerKind kind, std::vector<ParamGroup> groups);
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;
  ~Optimizer();

  /// Makes one update of every parameter that has a gradient; others and their step counts stay as they are.
  void step();

  /// Sets all gradients to none.
  void zero_grad();

  /// Replaces every parameter by the slice of the same name, after sharding. State that exists is cut alike.
  /// Throws: Error{kConfig} that names a parameter which `params` lacks or has in another global shape.
  void rebind(const mesh::StateDict& params);

  /// The gradients as clipping takes them, in order of the groups; parameters without one are left out.
  [[nodiscard]] std::vector<NamedGradient> gradients() const;

  [[nodiscard]] OptimizerKind kind() const { return kind_; }
  [[nodiscard]] std::vector<ParamGroup>& groups() { return groups_; }
  [[nodiscard]] const std::vector<ParamGroup>& groups() const { return groups_; }

  /// The state of every parameter that was updated at least once. Tensors are shared, not copied.
  [[nodiscard]] mesh::StateDict state_dict(StateNaming naming) const;

  /// Makes fresh zero state for the parameters that a checkpoint has state for, drops that of the others, and gives
  /// all entries: a checkpoint reader copies into them. Parameters do not change.
  ///
  /// `is_saved` is asked with the name of a parameter's first entry ("…/step", for SGD "…/momentum_buffer").
  mesh::StateDict allocate_state(StateNaming naming, const std::function<bool(const std::string&)>& is_saved);

  /// The groups as a JSON array in the key order of PyTorch; `params` holds indices or FQNs.
  [[nodiscard]] Json param_groups(StateNaming naming) const;

  /// Takes over saved groups: every value, `initial_lr` included, replaces the present one.
  ///
  /// By index, groups match by position and must hold as many parameters. By FQN, a saved group goes to the present
  /// group that holds one of its parameters; a group without parameters to the only such group.
  ///
  /// Throws: Error{kCheckpoint} when keys, lengths or primitive kinds differ; `where` names the file.
  void load_param_groups(const Json& saved, StateNaming naming, std::string_view where);

 private:
  [[nodiscard]] Json group_json(const ParamGroup& group, StateNaming naming, std::size_t first_index) const;
  [[nodiscard]] bool keeps_state(const ParamGroup& group) const;
  void create_state(const ParamGroup& group, Parameter& param) const;
  void append_state(const Parameter& param, std::size_t index, StateNaming naming, mesh::StateDict& out) const;
  ParamGroup& group_for(const Json& saved, std::string_view where);

  OptimizerKind kind_;
  std::vector<ParamGroup> groups_;
  std::unique_ptr<FusedUpdate> update_;
};

}  // namespace lerobot::optim
