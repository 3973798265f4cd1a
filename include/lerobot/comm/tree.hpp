#pragma once

#include <cstddef>
#include <span>

namespace lerobot::comm {

/// How many of `n` > 1 neighbouring items form the left part of their binary tree: the largest power of two below `n`.
constexpr std::size_t tree_left(std::size_t n) {
  std::size_t left = 1;
  while (left * 2 < n) left *= 2;
  return left;
}

/// Combines `items` in the one order that every reduction of this library uses: a binary tree over the index that
/// joins neighbours first, ((0 1)(2 3))((4 5) 6).
///
/// A run of 2^k neighbours that starts at a multiple of 2^k is a subtree of its own. So a sum over groups of 2^k
/// consecutive ranks, followed by a sum over the groups, has the same order as one sum over all ranks: this is what
/// makes DDP, FSDP and HSDP agree to the bit.
template <typename T, typename Combine>
constexpr T tree_reduce(std::span<const T> items, const Combine& combine) {
  if (items.size() == 1) return items[0];
  const std::size_t left = tree_left(items.size());
  return combine(tree_reduce(items.first(left), combine), tree_reduce(items.subspan(left), combine));
}

static_assert(tree_left(2) == 1 && tree_left(3) == 2 && tree_left(4) == 2 && tree_left(5) == 4 && tree_left(8) == 4);

}  // namespace lerobot::comm
