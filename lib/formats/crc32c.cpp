#include "lerobot/formats/crc32c.hpp"

#include <array>
#include <cstring>

#include "formats/crc_tables.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lerobot::formats {
namespace {

using Crc = CrcArithmetic<0x82F63B78>;  // Castagnoli

#if defined(__x86_64__)
// The instruction takes three cycles but starts one each cycle: three streams at a time keep it busy.
constexpr std::size_t kStream = 4096;

// multiply(sum, x^(8 * kStream)) by table, one per byte of the sum.
constexpr auto kSkipStream = [] {
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  const std::uint32_t power = Crc::power_of_bytes(kStream);
  for (std::uint32_t k = 0; k < 4; ++k) {
    std::array<std::uint32_t, 8> basis{};
    for (std::uint32_t bit = 0; bit < 8; ++bit) basis[bit] = Crc::multiply(1U << (8 * k + bit), power);
    for (std::uint32_t byte = 0; byte < 256; ++byte)
      for (std::uint32_t bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) tables[k][byte] ^= basis[bit];
  }
  return tables;
}();

std::uint32_t skip_stream(std::uint64_t sum) {
  return kSkipStream[0][sum & 0xFF] ^ kSkipStream[1][sum >> 8 & 0xFF] ^ kSkipStream[2][sum >> 16 & 0xFF] ^
         kSkipStream[3][sum >> 24 & 0xFF];
}

std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t advance_by_instruction(std::uint32_t start, const std::byte* at,
                                                                       std::size_t nbytes) {
  std::uint64_t sum = start;
  for (; nbytes >= 3 * kStream; at += 3 * kStream, nbytes -= 3 * kStream) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kStream; i += 8) {
      sum = _mm_crc32_u64(sum, load_word(at + i));
      second = _mm_crc32_u64(second, load_word(at + kStream + i));
      third = _mm_crc32_u64(third, load_word(at + 2 * kStream + i));
    }
    sum = skip_stream(skip_stream(sum) ^ second) ^ third;
  }
  for (; nbytes >= 8; at += 8, nbytes -= 8) sum = _mm_crc32_u64(sum, load_word(at));
  auto tail = static_cast<std::uint32_t>(sum);
  for (; nbytes > 0; ++at, --nbytes) tail = _mm_crc32_u8(tail, static_cast<unsigned char>(*at));
  return tail;
}

using Advance = std::uint32_t (*)(std::uint32_t, const std::byte*, std::size_t);
Advance fastest() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") ? advance_by_instruction : Crc::advance;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const Advance advance = fastest();
  return ~advance(~before, bytes.data(), bytes.size());
#else
  return crc32c_by_table(bytes, before);
#endif
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) {
  return ~Crc::advance(~before, bytes.data(), bytes.size());
}

std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_nbytes) {
  return Crc::multiply(first, Crc::power_of_bytes(second_nbytes)) ^ second;
}

}  // namespace lerobot::formats
