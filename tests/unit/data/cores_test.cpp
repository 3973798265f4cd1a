#include "lerobot/data/cores.hpp"

#include <catch2/catch.hpp>

using lerobot::data::binding_warning;
using lerobot::data::loader_threads;

TEST_CASE("binding_warning: a rank bound to one core (case L6)", "[cores]") {
  const auto warning = binding_warning(4, {1, 16});
  REQUIRE(warning);
  for (const char* part : {"1 core of 16", "4 loader threads", "--bind-to none"})
    CHECK_THAT(*warning, Catch::Matchers::Contains(part));
  CHECK(binding_warning(4, {2, 16}));
  CHECK_FALSE(binding_warning(4, {4, 16}));
  CHECK_FALSE(binding_warning(4, {2, 2}));  // a small machine is not a binding
  CHECK_FALSE(binding_warning(0, {1, 16}));
}

TEST_CASE("loader_threads: no more than the usable cores", "[cores]") {
  CHECK(loader_threads(4, {1, 16}) == 1);
  CHECK(loader_threads(4, {8, 16}) == 4);
  CHECK(loader_threads(0, {8, 16}) == 0);
  CHECK(lerobot::data::count_cores().usable >= 1);
}
