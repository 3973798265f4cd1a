#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace lerobot {

/// Who can act on a failure, and so with which code a program ends.
enum class ErrorKind {
  kUsage,       ///< The form of the command line is wrong: an unknown flag, a flag without a value. Exit code 2.
  kConfig,      ///< A setting is wrong or two settings disagree: fix the command line or the config file. Exit code 1.
  kCheckpoint,  ///< A checkpoint file is missing, damaged, or of another run. Exit code 1.
  kDataset,     ///< The same, for the dataset. Exit code 1.
  kComm,        ///< A collective failed or timed out, or a rank was lost. Exit code 3.
  kInternal,    ///< An invariant of this library broke: a bug here. Exit code 1.
};

/// The one exception type of the library. `what()` says: where, what is wrong with every value in play, what was
/// expected, what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// Throws `Error{kind}` with the formatted message. The format string is checked by the compiler.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> message, Args&&... args) {
  throw Error(kind, fmt::format(message, std::forward<Args>(args)...));
}

/// The exit code of a program that ends with an error of this kind.
constexpr int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage: return 2;
    case ErrorKind::kComm: return 3;
    default: return 1;
  }
}

}  // namespace lerobot
