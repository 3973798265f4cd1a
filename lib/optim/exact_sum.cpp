#include "lerobot/optim/exact_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lerobot::optim {

namespace {

constexpr int kLowestExponent = -1074;                         // weight of bit 0 of word 0
constexpr std::int64_t kMaxAdditions = std::int64_t{1} << 28;  // each grows a word by less than 2^34

// A block is summed on fixed grids below its largest square 2^e. A lane adds up to 64 multiples of 2^(e-44) that are at
// most 2^e, and four lanes are added up: less than 2^53 grid steps, so nothing rounds. What is left of a square after a
// grid is at most half a step and goes the same way onto the next one, 45 bits below. Two grids hold the squares of all
// values down to 2^-22 of the largest; a block with smaller ones is done again on four, which reach down to 2^-67.
constexpr std::size_t kBlock = 256;
constexpr int kGridBits = 44;
constexpr std::size_t kFew = 2, kMany = 4;

template <std::size_t kGrids>
struct Sums {
  std::array<double, kGrids> on_grid{};
  bool has_rest = false;  ///< some square has bits below the last grid
};

using Rounders = std::array<double, kMany>;

// Adding and subtracting 1.5 * 2^(g+52) rounds a number below 2^(g+51) to a multiple of 2^g.
Rounders rounders_below(int exponent) {
  Rounders out;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::ldexp(1.5, exponent - static_cast<int>(i) * (kGridBits + 1) - kGridBits + 52);
  return out;
}

// What a square leaves below the first `kGrids` grids; adds the parts on the grids to `on_grid`.
template <std::size_t kGrids>
double split_square(float value, const Rounders& rounders, std::array<double, kGrids>& on_grid) {
  double rest = static_cast<double>(value) * static_cast<double>(value);
  for (std::size_t i = 0; i < kGrids; ++i) {
    const double part = (rest + rounders[i]) - rounders[i];
    on_grid[i] += part;
    rest -= part;
  }
  return rest;
}

std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU; }

std::uint32_t max_magnitude_scalar(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  return largest;
}

template <std::size_t kGrids>
Sums<kGrids> sum_block_scalar(std::span<const float> values, const Rounders& rounders) {
  Sums<kGrids> sums;
  for (const float value : values) sums.has_rest |= split_square(value, rounders, sums.on_grid) != 0.0;
  return sums;
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) std::uint32_t max_magnitude_avx2(std::span<const float> values) {
  const __m256i sign_off = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (std::size_t i = 0; i < values.size(); i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values.data() + i));
    largest = _mm256_max_epu32(largest, _mm256_and_si256(bits, sign_off));
  }
  alignas(32) std::array<std::uint32_t, 8> lanes;
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes.data()), largest);
  return *std::max_element(lanes.begin(), lanes.end());
}

// The target has no FMA on purpose: a contracted product would still be exact, but this way it needs no argument.
template <std::size_t kGrids>
__attribute__((target("avx2"))) Sums<kGrids> sum_block_avx2(std::span<const float> values, const Rounders& rounders) {
  __m256d on_grid[kGrids], to_grid[kGrids];
  for (std::size_t g = 0; g < kGrids; ++g) {
    on_grid[g] = _mm256_setzero_pd();
    to_grid[g] = _mm256_set1_pd(rounders[g]);
  }
  __m256d rests = _mm256_setzero_pd();
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(values.data() + i));
    __m256d rest = _mm256_mul_pd(value, value);
    for (std::size_t g = 0; g < kGrids; ++g) {
      const __m256d part = _mm256_sub_pd(_mm256_add_pd(rest, to_grid[g]), to_grid[g]);
      on_grid[g] = _mm256_add_pd(on_grid[g], part);
      rest = _mm256_sub_pd(rest, part);
    }
    rests = _mm256_or_pd(rests, rest);
  }
  Sums<kGrids> sums;
  for (std::size_t g = 0; g < kGrids; ++g) {
    alignas(32) std::array<double, 4> lanes;
    _mm256_store_pd(lanes.data(), on_grid[g]);
    sums.on_grid[g] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  }
  const __m256i any = _mm256_castpd_si256(rests);
  sums.has_rest = _mm256_testz_si256(any, any) == 0;
  return sums;
}

bool has_avx2() {
  static const bool yes = __builtin_cpu_supports("avx2") != 0;
  return yes;
}

std::uint32_t max_magnitude(std::span<const float> values) {
  return values.size() == kBlock && has_avx2() ? max_magnitude_avx2(values) : max_magnitude_scalar(values);
}

template <std::size_t kGrids>
Sums<kGrids> sum_block(std::span<const float> values, const Rounders& rounders) {
  return values.size() == kBlock && has_avx2() ? sum_block_avx2<kGrids>(values, rounders)
                                               : sum_block_scalar<kGrids>(values, rounders);
}

#else

std::uint32_t max_magnitude(std::span<const float> values) { return max_magnitude_scalar(values); }

template <std::size_t kGrids>
Sums<kGrids> sum_block(std::span<const float> values, const Rounders& rounders) {
  return sum_block_scalar<kGrids>(values, rounders);
}

#endif

}  // namespace

void ExactSum::add(double term) {
  if (term == 0.0) return;
  const auto bits = std::bit_cast<std::uint64_t>(term);
  const int biased = static_cast<int>((bits >> 52) & 0x7ffU);
  const std::uint64_t fraction = bits & 0xfffffffffffffU;
  const std::uint64_t mantissa = biased == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  const int position = biased == 0 ? 0 : biased - 1;  // of the mantissa's last bit, counted from 2^-1074
  const auto word = static_cast<std::size_t>(position / 32);
  const int shift = position % 32;
  const std::uint64_t low = (mantissa & 0xffffffffU) << shift;
  const std::uint64_t high = (mantissa >> 32) << shift;
  const std::int64_t sign = (bits >> 63) != 0 ? -1 : 1;
  words_[word] += sign * static_cast<std::int64_t>(low & 0xffffffffU);
  words_[word + 1] += sign * static_cast<std::int64_t>((low >> 32) + (high & 0xffffffffU));
  words_[word + 2] += sign * static_cast<std::int64_t>(high >> 32);
  if (++num_additions_ >= kMaxAdditions) settle_carries();
}

bool ExactSum::add_squares(std::span<const float> values) {
  const ExactSum before = *this;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const std::uint32_t largest = max_magnitude(block);
    if (largest >= 0x7f800000U) {
      *this = before;
      return false;
    }
    if (largest == 0) continue;
    // |value| < 2^(biased - 126), subnormal values included
    const int exponent = 2 * (static_cast<int>(largest >> 23) - 126);
    const Rounders rounders = rounders_below(exponent);
    const auto few = sum_block<kFew>(block, rounders);
    if (!few.has_rest) {
      for (const double part : few.on_grid) add(part);
      continue;
    }
    const auto many = sum_block<kMany>(block, rounders);
    for (const double part : many.on_grid) add(part);
    if (!many.has_rest) continue;
    std::array<double, kMany> counted_above{};
    for (const float value : block) add(split_square(value, rounders, counted_above));
  }
  return true;
}

void ExactSum::settle_carries() {
  std::int64_t carry = 0;
  for (std::size_t i = 0; i + 1 < kWords; ++i) {
    const std::int64_t value = words_[i] + carry;
    words_[i] = value & 0xffffffff;
    carry = value >> 32;  // rounds down, so that the digit is never negative
  }
  words_[kWords - 1] += carry;
  num_additions_ = 0;
}

const std::array<std::int64_t, ExactSum::kWords>& ExactSum::words() {
  settle_carries();
  return words_;
}

void ExactSum::add_words(std::span<const std::int64_t, kWords> words) {
  settle_carries();
  for (std::size_t i = 0; i < kWords; ++i) words_[i] += words[i];
  settle_carries();
}

double ExactSum::rounded() {
  settle_carries();
  std::size_t top = kWords;
  while (top > 0 && words_[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  const auto digit = [&](std::size_t below_top) {
    return top > below_top ? static_cast<std::uint64_t>(words_[top - 1 - below_top]) : 0U;
  };
  const int top_bits = static_cast<int>(std::bit_width(digit(0)));  // 1..32: head-room keeps the last word small
  // the 64 bits from the highest set one down, and whether anything is below them
  const std::uint64_t window = (digit(0) << (64 - top_bits)) | (digit(1) << (32 - top_bits)) | (digit(2) >> top_bits);
  bool below = (digit(2) & ((std::uint64_t{1} << top_bits) - 1)) != 0;
  for (std::size_t i = 3; i < top && !below; ++i) below = digit(i) != 0;
  const std::uint64_t rest = window & 0x7ffU;
  std::uint64_t mantissa = window >> 11;
  if (rest > 0x400U || (rest == 0x400U && (below || (mantissa & 1U) != 0))) ++mantissa;
  const int highest_bit = static_cast<int>(top - 1) * 32 + top_bits - 1;
  return std::ldexp(static_cast<double>(mantissa), highest_bit + kLowestExponent - 52);
}

}  // namespace lerobot::optim
