#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <memory>
#include <string_view>

namespace lerobot::nn {

/// One running call of a hooked module, as its hooks see it.
class Call {
 public:
  virtual ~Call() = default;
  /// Calls `f` for each defined tensor among the arguments; `f` may replace it.
  virtual void for_inputs(const std::function<void(at::Tensor&)>& f) = 0;
  /// The same for the results. Valid after `run`.
  virtual void for_outputs(const std::function<void(at::Tensor&)>& f) = 0;
  /// Runs the next hook inwards, or the module's own forward. A hook may call it again to recompute.
  virtual void run() = 0;
};

/// Something that runs around the forward of a module: an adapter, activation checkpointing, a wrap unit.
class Hook {
 public:
  virtual ~Hook() = default;
  /// Must call `call.run()` at least once, or throw.
  virtual void around(Call& call) = 0;
};

/// Where a hook stands; the innermost comes first.
enum class HookLayer : std::size_t { kAdapter, kCheckpoint, kUnit };
inline constexpr std::size_t kNumHookLayers = 3;

/// The place in a module where hooks are attached; every module declared with LEROBOT_MODULE has one.
class HookPoint {
 public:
  virtual ~HookPoint() = default;
  /// The class as users and LeRobot (Python) name it: "ACTEncoderLayer".
  [[nodiscard]] virtual std::string_view class_name() const = 0;

  void attach(HookLayer layer, std::shared_ptr<Hook> hook) {
    hooks_[static_cast<std::size_t>(layer)] = std::move(hook);
    has_hooks_ = false;
    for (const auto& h : hooks_) has_hooks_ = has_hooks_ || h != nullptr;
  }
  void detach(HookLayer layer) { attach(layer, nullptr); }
  [[nodiscard]] const std::shared_ptr<Hook>& hook(HookLayer layer) const {
    return hooks_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool has_hooks() const noexcept { return has_hooks_; }

 private:
  std::array<std::shared_ptr<Hook>, kNumHookLayers> hooks_{};
  bool has_hooks_ = false;
};

}  // namespace lerobot::nn
