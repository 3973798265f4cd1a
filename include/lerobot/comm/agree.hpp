#pragma once

#include <concepts>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lerobot/comm/process_group.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::comm {

/// The texts of all ranks, in rank order. Collective: over `group`.
[[nodiscard]] std::vector<std::string> all_gather_text(c10d::ProcessGroup& group, std::string_view text);

/// The text of rank `root`. Collective: over `group`.
[[nodiscard]] std::string broadcast_text(c10d::ProcessGroup& group, std::string_view text, int root = 0);

/// An error that every rank throws at the same point with the same text: rank 0 reports it for all, and no rank is left
/// waiting. Any other exception is known to its own rank only, which must report it and abort the job.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Returns if `failure` is null on all ranks; else throws the same `AgreedError` on every rank.
///
/// The error is that of the first rank that failed. Its text stands as it is when all ranks failed alike; otherwise
/// "`what`: rank r failed: text". Its kind is that of the failure, or `kind` when that is no `Error`.
///
/// Collective: over `group`.
void agree_error(c10d::ProcessGroup& group, ErrorKind kind, std::string_view what, const std::exception_ptr& failure);

/// Runs `step` here; returns only if it succeeded everywhere, else throws the same `AgreedError` on every rank.
///
/// For every local step that can fail (files, parsing, allocation) before the next collective. `step` itself must not
/// communicate.
///
/// Collective: over `group`.
template <std::invocable Step>
void on_every_rank(c10d::ProcessGroup& group, ErrorKind kind, std::string_view what, Step&& step) {
  std::exception_ptr failure;
  try {
    std::forward<Step>(step)();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  agree_error(group, kind, what, failure);
}

}  // namespace lerobot::comm
