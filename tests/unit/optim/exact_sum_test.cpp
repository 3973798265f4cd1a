#include "lerobot/optim/exact_sum.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

using lerobot::optim::ExactSum;

namespace {

// Normal values times a power of two from a wide range, zeros and subnormals among them.
std::vector<float> wild_values(std::size_t count, unsigned seed, int max_exponent) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-max_exponent, max_exponent);
  std::vector<float> values(count);
  for (auto& v : values) v = rng() % 7 == 0 ? 0.0F : std::ldexp(normal(rng), exponent(rng));
  return values;
}

double rounded_squares(const std::vector<float>& values) {
  ExactSum sum;
  REQUIRE(sum.add_squares(values));
  return sum.rounded();
}

}  // namespace

TEST_CASE("ExactSum: terms that cancel leave exactly the rest", "[exact_sum][unit]") {
  ExactSum sum;
  for (const double term : {1e300, 1.0, 1e-300, -1e300, 5e-324}) sum.add(term);
  CHECK(sum.rounded() == 1.0);
  sum.add(-1.0);
  CHECK(sum.rounded() == 1e-300);
  sum.add(-1e-300);
  CHECK(sum.rounded() == 5e-324);
}

TEST_CASE("ExactSum: rounds once, to nearest, ties to even", "[exact_sum][unit]") {
  const double half = std::ldexp(1.0, -53);  // half a unit in the last place of 1
  const auto sum_of = [](std::initializer_list<double> terms) {
    ExactSum sum;
    for (const double term : terms) sum.add(term);
    return sum.rounded();
  };
  CHECK(sum_of({1.0, half}) == 1.0);
  CHECK(sum_of({1.0, half, 1e-200}) == std::nextafter(1.0, 2.0));
  CHECK(sum_of({std::nextafter(1.0, 2.0), half}) == 1.0 + 4 * half);
  CHECK(sum_of({1.0, half / 2, half / 2, half / 4}) == std::nextafter(1.0, 2.0));
  CHECK(sum_of({}) == 0.0);
}

TEST_CASE("ExactSum: squares give the same double in any order and any cut", "[exact_sum][unit]") {
  for (const int range : {0, 8, 30, 60}) {
    auto values = wild_values(5000, 7U + static_cast<unsigned>(range), range);
    const double whole = rounded_squares(values);
    std::mt19937 rng(3);
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(values.begin(), values.end(), rng);
      std::vector<std::array<std::int64_t, ExactSum::kWords>> ranks;
      for (std::size_t begin = 0; begin < values.size();) {
        const std::size_t count = std::min<std::size_t>(rng() % 900, values.size() - begin);
        ExactSum part;
        REQUIRE(part.add_squares(std::span(values).subspan(begin, count)));
        ranks.push_back(part.words());
        begin += count;
      }
      ExactSum total;
      for (const auto& words : ranks) total.add_words(words);
      REQUIRE(total.rounded() == whole);
    }
  }
}

TEST_CASE("ExactSum: squares of integers have the closed form", "[exact_sum][unit]") {
  std::vector<float> values(200'000);
  std::iota(values.begin(), values.end(), 1.0F);
  const double n = 200'000;
  CHECK(rounded_squares(values) == n * (n + 1) / 2 * (2 * n + 1) / 3);
}

TEST_CASE("ExactSum: huge and subnormal values are counted to the last bit", "[exact_sum][unit]") {
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  std::vector<float> values(300, tiny);
  values[17] = huge;
  ExactSum sum;
  REQUIRE(sum.add_squares(values));
  sum.add(-static_cast<double>(huge) * static_cast<double>(huge));
  CHECK(sum.rounded() == 299.0 * static_cast<double>(tiny) * static_cast<double>(tiny));
}

TEST_CASE("ExactSum: a value that is not finite adds nothing and is reported", "[exact_sum][unit]") {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
    for (const std::size_t place : {std::size_t{0}, std::size_t{300}, std::size_t{599}}) {
      std::vector<float> values(600, 2.0F);
      values[place] = bad;
      ExactSum sum;
      sum.add(5.0);
      CHECK_FALSE(sum.add_squares(values));
      CHECK(sum.rounded() == 5.0);
    }
}
