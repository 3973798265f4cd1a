#pragma once

#include <catch2/catch.hpp>

#include <initializer_list>
#include <string>

#include "lerobot/core/error.hpp"

namespace lerobot::test {

/// Runs `step`, which must throw Error{kind}; its message must hold every fragment.
template <typename Step>
void expect_error(ErrorKind kind, std::initializer_list<std::string> fragments, Step&& step) {
  try {
    step();
  } catch (const Error& e) {
    INFO("message: " << e.what());
    CHECK(static_cast<int>(e.kind()) == static_cast<int>(kind));
    for (const std::string& fragment : fragments) CHECK_THAT(e.what(), Catch::Matchers::Contains(fragment));
    return;
  }
  FAIL("no Error was thrown");
}

}  // namespace lerobot::test
