#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fsdp/call_order.hpp"
#include "fsdp/param_group.hpp"
#include "fsdp/reduction.hpp"
#include "lerobot/fsdp/options.hpp"
#include "lerobot/fsdp/sharded_module.hpp"
#include "lerobot/nn/hook.hpp"

namespace lerobot::fsdp {

/// A wrap unit at run time.
struct Unit {
  UnitInfo info;
  std::unique_ptr<ParamGroup> group;
  nn::HookPoint* hook_point = nullptr;  ///< in a module that the engine keeps alive
  bool is_root = false;
  int num_pins = 0;              ///< Unsharded scopes that want it whole
  bool in_backward = false;
  std::int64_t num_live_calls = 0;  ///< recorded calls whose backward has not run
};

/// Runs the wrap units of one module around its forwards and backwards: when each is gathered, freed and reduced.
///
/// Forward of unit k, from its hook:            Backward of unit k:
///   gather k (issued while k-1 ran)              gather k (issued while k+1 ran)      hook on its outputs
///   issue the gather of k+1                      issue the gather of k-1
///   run the body                                 autograd runs
///   free k                                       free k; finish the reduction of k+1; node behind its inputs
///                                                pack and issue the reduction of k
/// So at most two units are gathered besides the ones that enclose them, and one reduce-scatter is under way. A unit
/// whose inputs need no gradient (the root, as a rule) has no node and is reduced when backward ends.
///
/// One thread at a time: the caller's, or autograd's while the caller waits in backward.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::shared_ptr<torch::nn::Module> module, std::vector<Unit> units, std::vector<ShardedParam> ignored,
         const ShardGroups& groups, const FsdpOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Puts the hooks on. Apart from the constructor, as they need a shared owner.
  void attach();
  void detach() noexcept;

  /// Runs one call of a unit. The hooks come here.
  void forward(std::size_t unit, nn::Call& call);

  void pin(Extent extent);
  void unpin(Extent extent) noexcept;
  void set_grads_to_none();

  [[nodiscard]] bool communicates_gradients() const { return communicates_gradients_; }
  void set_communicates_gradients(bool on) { communicates_gradients_ = on; }
  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  [[nodiscard]] std::vector<Unit>& units() { return units_; }
  [[nodiscard]] const std::vector<Unit>& units() const { return units_; }
  [[nodiscard]] const std::vector<ShardedParam>& ignored() const { return ignored_; }
  [[nodiscard]] const ShardGroups& groups() const { return groups_; }

 private:
  void begin_pass();
  void begin_backward();
  /// After a throw: waits for what is under way and frees every unit that no scope pins.
  void abandon_pass() noexcept;
  /// The same for a backward. Some gradients were reduced and some not: all of them go.
  void abandon_backward() noexcept;
  /// Makes `unit` whole and issues the gather of the one expected after it.
  void unshard_and_fetch_ahead(std::size_t unit, CallOrder& order);
  void free_after_forward(Unit& unit);
  void record_inputs(std::size_t unit, nn::Call& call);
  void record_outputs(std::size_t unit, nn::Call& call);
  void pre_backward(std::size_t unit);
  void post_backward(std::size_t unit);
  void finish_backward();
  void reduce(Unit& unit);
  /// Moves the pipeline on: the all-reduce before the last ends, the last reduce-scatter becomes an all-reduce.
  void advance_reductions();
  void reduce_ignored();
  /// Gradients that stay here until a later backward communicates.
  void hold(Unit& unit);

  std::shared_ptr<torch::nn::Module> module_;
  std::vector<Unit> units_;
  std::vector<ShardedParam> ignored_;  ///< `shard` is the parameter itself
  ShardGroups groups_;
  precision::MixedPrecisionPolicy mp_policy_;
  bool keeps_whole_after_forward_;
  bool communicates_gradients_ = true;

  int depth_ = 0;  ///< of nested unit calls
  bool in_backward_ = false;
  CallOrder train_order_;
  CallOrder eval_order_;
  CallOrder* forward_order_ = &train_order_;  ///< of the pass that is under way
  CallOrder backward_order_;
  std::vector<int> recorded_;           ///< units of this pass that backward will come to, in forward order
  std::optional<std::size_t> ahead_;    ///< the unit whose gather was issued ahead
  std::optional<Reduction> scattering_;
  std::optional<Reduction> averaging_;
};

}  // namespace lerobot::fsdp
