#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lerobot::optim {

/// The exact sum of any number of finite doubles: a fixed-point number wide enough for all of them.
///
/// No addition rounds, so the sum does not depend on the order of its terms, nor on how they are dealt to ranks: that
/// is what makes a gradient norm, and with it every clipped update, the same to the bit in every layout. Digits of
/// 32 bits sit in signed 64-bit words and carries are put off, so two sums add word by word and a SUM all-reduce of
/// the words of many ranks is the sum of all their terms.
class ExactSum {
 public:
  /// Digits for 2^-1074 .. 2^1024 and 64 bits of head-room.
  static constexpr std::size_t kWords = 68;

  void add(double term);

  /// Adds the square of every value, exactly: 24-bit mantissas have 48-bit squares, which fit a double.
  ///
  /// Adds nothing and returns false when a value is infinite or NaN. About 0.5 ns per value with AVX2.
  [[nodiscard]] bool add_squares(std::span<const float> values);

  /// Words with carries settled: each but the last lies in [0, 2^32), so the words of 2^31 ranks can be added up.
  [[nodiscard]] const std::array<std::int64_t, kWords>& words();

  /// Adds a sum given as words, for instance those of another rank or of an all-reduce.
  void add_words(std::span<const std::int64_t, kWords> words);

  /// The nearest double, ties to even; the only rounding. The sum must not be negative.
  [[nodiscard]] double rounded();

 private:
  void settle_carries();

  std::array<std::int64_t, kWords> words_{};
  std::int64_t num_additions_ = 0;  ///< since carries were settled
};

}  // namespace lerobot::optim
