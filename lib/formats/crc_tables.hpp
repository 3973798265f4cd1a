#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lerobot::formats {

static_assert(std::endian::native == std::endian::little, "the readers and writers copy little-endian words");

/// Arithmetic of a 32-bit CRC whose polynomial is given with its bits reversed. Sums are as they stand in the register:
/// the callers invert them.
template <std::uint32_t kPolynomial>
struct CrcArithmetic {
  /// [0] advances a sum by one byte; [k] by a byte that k more bytes follow.
  static constexpr auto kTables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t sum = byte;
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? kPolynomial : 0);
      tables[0][byte] = sum;
    }
    for (std::size_t k = 1; k < tables.size(); ++k)
      for (std::size_t byte = 0; byte < 256; ++byte)
        tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xFF];
    return tables;
  }();

  static std::uint32_t advance(std::uint32_t sum, const std::byte* at, std::size_t nbytes) {
    for (; nbytes >= 8; at += 8, nbytes -= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, sizeof(word));
      word ^= sum;
      sum = 0;
      for (std::size_t k = 0; k < 8; ++k) sum ^= kTables[7 - k][word >> (8 * k) & 0xFF];
    }
    for (; nbytes > 0; ++at, --nbytes) sum = sum >> 8 ^ kTables[0][(sum ^ static_cast<std::uint32_t>(*at)) & 0xFF];
    return sum;
  }

  /// Product of two polynomials over GF(2) modulo the CRC's; bit 31 stands for x^0.
  static constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
      if ((a & bit) != 0) product ^= b;
      b = b >> 1 ^ ((b & 1) != 0 ? kPolynomial : 0);
    }
    return product;
  }

  /// x^(8 * nbytes): multiplying a sum with it appends that many zero bytes.
  static constexpr std::uint32_t power_of_bytes(std::uint64_t nbytes) {
    std::uint32_t power = 1U << 23;   // x^8
    std::uint32_t result = 1U << 31;  // x^0
    for (; nbytes != 0; nbytes >>= 1) {
      if ((nbytes & 1) != 0) result = multiply(result, power);
      power = multiply(power, power);
    }
    return result;
  }
};

}  // namespace lerobot::formats
