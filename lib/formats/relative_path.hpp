#pragma once

#include <string_view>

namespace lerobot::formats {

/// True for a path that stays below the folder it is joined to: relative, with `/` between names, none of them empty,
/// `.` or `..`.
[[nodiscard]] constexpr bool stays_inside(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

static_assert(stays_inside("a/b.c") && stays_inside("..a"));
static_assert(!stays_inside("") && !stays_inside("/a") && !stays_inside("a/../b") && !stays_inside("a//b") &&
              !stays_inside("a/"));

}  // namespace lerobot::formats
