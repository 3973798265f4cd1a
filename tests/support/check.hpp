#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace lerobot::testing {

/// Throws when `condition` is false. For code that runs on several threads, where Catch2's macros may not be used.
template <typename... Args>
void check(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw std::runtime_error("check failed: " + fmt::format(text, std::forward<Args>(args)...));
}

/// Runs `f`, which must throw an error whose text contains `fragment`.
template <typename F>
void check_throws(F&& f, const std::string& fragment) {
  std::string text;
  try {
    f();
  } catch (const std::exception& e) {
    text = e.what();
    if (text.find(fragment) != std::string::npos) return;
    throw std::runtime_error(fmt::format("expected an error with \"{}\", got \"{}\"", fragment, text));
  }
  throw std::runtime_error(fmt::format("expected an error with \"{}\", got none", fragment));
}

}  // namespace lerobot::testing
