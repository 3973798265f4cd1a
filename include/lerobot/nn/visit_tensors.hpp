#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace lerobot::nn {

/// Calls `f(at::Tensor&)` for every defined tensor in a forward's argument or result.
///
/// Knows tensors, and optionals, vectors, maps, pairs and tuples of what it knows, and any struct with a member
/// `template <typename F> void visit_tensors(F&& f)`. Everything else holds no tensors. Order is declaration order.
template <typename T, typename F>
void visit_tensors(T& value, F&& f);

namespace detail {

template <typename F>
void visit(at::Tensor& tensor, F& f) {
  if (tensor.defined()) f(tensor);
}
template <typename T, typename F>
void visit(std::optional<T>& value, F& f) {
  if (value) visit_tensors(*value, f);
}
template <typename T, typename A, typename F>
void visit(std::vector<T, A>& values, F& f) {
  for (auto& value : values) visit_tensors(value, f);
}
template <typename K, typename T, typename C, typename A, typename F>
void visit(std::map<K, T, C, A>& values, F& f) {
  for (auto& [key, value] : values) visit_tensors(value, f);
}
template <typename T, typename U, typename F>
void visit(std::pair<T, U>& values, F& f) {
  visit_tensors(values.first, f);
  visit_tensors(values.second, f);
}
template <typename... T, typename F>
void visit(std::tuple<T...>& values, F& f) {
  std::apply([&](auto&... value) { (visit_tensors(value, f), ...); }, values);
}

}  // namespace detail

template <typename T, typename F>
void visit_tensors(T& value, F&& f) {
  if constexpr (requires { value.visit_tensors(f); }) {
    value.visit_tensors(f);
  } else if constexpr (requires { detail::visit(value, f); }) {
    detail::visit(value, f);
  }
}

}  // namespace lerobot::nn
