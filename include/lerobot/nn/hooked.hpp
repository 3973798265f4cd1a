#pragma once

#include <torch/nn/pimpl.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lerobot/nn/hook.hpp"
#include "lerobot/nn/visit_tensors.hpp"

namespace lerobot::nn {
namespace detail {

template <typename Signature>
struct MemberFunction;
template <typename C, typename R, typename... A>
struct MemberFunction<R (C::*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<A...>;
};
template <typename C, typename R, typename... A>
struct MemberFunction<R (C::*)(A...) const> : MemberFunction<R (C::*)(A...)> {};

/// The call of one forward: arguments by value, so that hooks can replace tensors in them.
template <typename R, typename Body, typename... A>
class ForwardCall final : public Call {
 public:
  ForwardCall(const HookPoint& point, Body body, std::tuple<A...> arguments)
      : point_(point), body_(std::move(body)), arguments_(std::move(arguments)) {}

  void for_inputs(const std::function<void(at::Tensor&)>& f) override { visit_tensors(arguments_, f); }
  void for_outputs(const std::function<void(at::Tensor&)>& f) override { visit_tensors(*result_, f); }

  void run() override {
    // Layers above `next_` have run already; a recompute starts again from where its hook stands.
    const std::size_t from = next_;
    std::size_t layer = from;
    while (layer > 0 && !point_.hook(static_cast<HookLayer>(layer - 1))) --layer;
    if (layer == 0) {
      result_.emplace(std::apply(body_, arguments_));
      return;
    }
    next_ = layer - 1;
    const std::shared_ptr<Hook> hook = point_.hook(static_cast<HookLayer>(layer - 1));
    struct Restore {
      std::size_t& slot;
      std::size_t value;
      ~Restore() { slot = value; }
    } restore{next_, from};
    hook->around(*this);
  }

  R take() { return std::move(*result_); }

 private:
  const HookPoint& point_;
  Body body_;
  std::tuple<A...> arguments_;
  std::optional<R> result_;
  std::size_t next_ = kNumHookLayers;
};

template <typename Impl, typename Tag, typename Arguments>
class HookedBase;

template <typename Impl, typename Tag, typename... A>
class HookedBase<Impl, Tag, std::tuple<A...>> : public Impl, public HookPoint {
 public:
  using Result = typename MemberFunction<decltype(&Impl::forward)>::Result;
  using Impl::Impl;

  /// Same signature as `Impl::forward`. With no hook attached it is that call and nothing more.
  Result forward(A... arguments) {
    if (!this->has_hooks()) return Impl::forward(std::forward<A>(arguments)...);
    auto body = [this](std::decay_t<A>&... copies) -> Result { return Impl::forward(copies...); };
    ForwardCall<Result, decltype(body), std::decay_t<A>...> call(*this, body, {std::forward<A>(arguments)...});
    call.run();
    return call.take();
  }

  [[nodiscard]] std::string_view class_name() const override { return Tag::kName; }
};

}  // namespace detail

/// A module of class `Impl` whose forward runs the hooks that a wrapper attached.
///
/// It derives from the ordinary `Impl` and hides its `forward` with one of the same signature, so that `m(x)`,
/// `m->forward(x)`, `Sequential` and `AnyModule` all pass through it. `Impl::forward` must not be overloaded or a
/// template; default arguments of it are not seen through the holder.
template <typename Impl, typename Tag>
class Hooked
    : public detail::HookedBase<Impl, Tag, typename detail::MemberFunction<decltype(&Impl::forward)>::Arguments> {
 public:
  using detail::HookedBase<Impl, Tag,
                           typename detail::MemberFunction<decltype(&Impl::forward)>::Arguments>::HookedBase;
};

}  // namespace lerobot::nn

/// Declares `Name` as the holder of `NameImpl`, where LibTorch would have TORCH_MODULE(Name). The one macro of the
/// library: a class name can't be had as text, nor a holder be declared after its Impl, in any other way.
#define LEROBOT_MODULE(Name)                                                                       \
  struct Name##Tag {                                                                               \
    static constexpr std::string_view kName = #Name;                                               \
  };                                                                                               \
  class Name : public torch::nn::ModuleHolder<::lerobot::nn::Hooked<Name##Impl, Name##Tag>> {      \
   public:                                                                                         \
    using torch::nn::ModuleHolder<::lerobot::nn::Hooked<Name##Impl, Name##Tag>>::ModuleHolder;     \
  }
