#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/mesh/shard.hpp"
#include "lerobot/mesh/tensor_slice.hpp"

namespace torch::nn {
class Module;
}

namespace lerobot::fsdp {

class Engine;

/// A wrap unit, for the banner and for memory plans.
struct UnitInfo {
  std::string path;        ///< FQN of its module; empty for the root
  std::string class_name;
  std::int64_t num_params = 0;       ///< elements of its parameters, on all ranks together
  std::int64_t num_trainable = 0;    ///< of these with a gradient
  std::int64_t shard_nbytes = 0;     ///< this rank's rows, with padding
  std::int64_t gathered_nbytes = 0;  ///< its parameters while it runs
};

/// Gives these rows of a named tensor, in any dtype and on any device.
using RowsProvider = std::function<at::Tensor(const std::string& fqn, mesh::Rows rows)>;

/// A module whose parameters are divided over ranks, unit by unit: what `fully_shard` returns.
///
/// The module is used as before: same type, same FQNs, same forward. Between calls `named_parameters()` gives this
/// rank's rows as leaves, which is what an optimizer takes; their gradients appear after a backward. While a unit runs
/// (and inside `Unsharded`) it gives the whole tensors. Touching a parameter's values at any other time is an error
/// that names the unit.
///
/// One rank's handle belongs to one thread. After an exception in a forward or backward every unit is sharded and idle
/// again and gradients of that step are gone; set the others to none and go on.
///
/// The destructor is not collective: it detaches the hooks and leaves the module's parameters empty, so that a shard is
/// never mistaken for a weight. Call `release()` to get the module back whole.
class [[nodiscard]] ShardedModule {
 public:
  explicit ShardedModule(std::shared_ptr<Engine> engine);
  ShardedModule(ShardedModule&&) noexcept;
  ShardedModule& operator=(ShardedModule&&) noexcept;
  ~ShardedModule();

  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& module() const;
  /// The wrap units, inner before outer, the root last.
  [[nodiscard]] std::vector<UnitInfo> units() const;

  /// Every parameter once, in registration order, as the leaf that the optimizer steps and that holds the gradient.
  ///
  /// Parameters of ignored modules have `is_sharded == false`: equal on all ranks, so a norm counts them once. Storage
  /// behind a shard and its gradient is zero up to the next multiple of 16 elements, for vectorised optimizers.
  [[nodiscard]] mesh::StateDict parameters() const;
  /// Every parameter and buffer under every name, registration order; shares storage with the live values.
  [[nodiscard]] mesh::StateDict state_dict() const;

  /// The whole tensor on rank 0 of the shard group, in the original dtype on the CPU; undefined on the others.
  ///
  /// Memory: elsewhere at most a fixed block (16 MiB) at a time.
  /// Collective: over the shard group.
  /// Throws: Error{kConfig} for an unknown name.
  [[nodiscard]] at::Tensor gather_full(std::string_view fqn);
  /// Fills parameters and buffers from rows that `rows_of` gives; asks for this rank's rows only. Not collective.
  ///
  /// Throws: Error{kCheckpoint} when a piece has another shape than asked for.
  void load(const RowsProvider& rows_of);

  /// Sets all gradients to none, those kept back by `NoSync` included. (`Optimizer::zero_grad` does not see these.)
  void set_grads_to_none();
  /// Gives the module back with whole parameters on every rank and without hooks. The handle is empty afterwards.
  ///
  /// Collective: over the shard group. Gradients are dropped.
  std::shared_ptr<torch::nn::Module> release() &&;

 private:
  friend class NoSync;
  friend class Unsharded;
  std::shared_ptr<Engine> engine_;
};

/// While it lives, backward communicates no gradient: they add up at full size until a backward without it.
class [[nodiscard]] NoSync {
 public:
  explicit NoSync(ShardedModule& sharded);
  ~NoSync();
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  std::shared_ptr<Engine> engine_;
  bool before_;
};

/// How much an `Unsharded` scope gathers.
enum class Extent {
  kRootUnit,  ///< what the root's own code touches; inner units gather themselves as they run
  kAllUnits,  ///< everything
};

/// While it lives, parameters are whole: for code of the module other than its forward, and for looking at weights.
///
/// What is written to them is lost. Do not step the optimizer or load inside.
/// Collective: the constructor, over the shard group.
class [[nodiscard]] Unsharded {
 public:
  explicit Unsharded(ShardedModule& sharded, Extent extent = Extent::kAllUnits);
  ~Unsharded();
  Unsharded(const Unsharded&) = delete;
  Unsharded& operator=(const Unsharded&) = delete;

 private:
  std::shared_ptr<Engine> engine_;
  Extent extent_;
};

}  // namespace lerobot::fsdp
