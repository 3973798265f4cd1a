#include "lerobot/formats/crc32c.hpp"

#include <random>

#include "support.hpp"

namespace lerobot::formats::test {

TEST_CASE("crc32c: known vectors of RFC 3720 and of the usual check string", "[crc32c]") {
  std::string up(32, '\0');
  for (std::size_t i = 0; i < 32; ++i) up[i] = static_cast<char>(i);
  const std::string down(up.rbegin(), up.rend());
  const std::vector<std::pair<std::string, std::uint32_t>> vectors{{"", 0},
                                                                   {"123456789", 0xE3069283},
                                                                   {std::string(32, '\0'), 0x8A9136AA},
                                                                   {std::string(32, '\xff'), 0x62A8AB43},
                                                                   {up, 0x46DD794E},
                                                                   {down, 0x113FDB5C}};
  for (const auto& [text, sum] : vectors) {
    CHECK(crc32c(bytes_of(text)) == sum);
    CHECK(crc32c_by_table(bytes_of(text)) == sum);
  }
}

TEST_CASE("crc32c: instruction and table agree on every length; pieces combine", "[crc32c]") {
  std::mt19937 random(1);
  std::string text(60'000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  const auto all = bytes_of(text);
  for (const std::size_t nbytes : {0, 1, 7, 8, 9, 63, 4095, 4096, 12287, 12288, 12289, 24576, 24583, 59'997})
    for (const std::size_t start : {0, 1, 3}) {
      const auto piece = all.subspan(start, nbytes);
      CHECK(crc32c(piece) == crc32c_by_table(piece));
    }
  const std::uint32_t whole = crc32c(all);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{33'333}, all.size()}) {
    const auto first = all.first(cut);
    const auto second = all.subspan(cut);
    CHECK(crc32c(second, crc32c(first)) == whole);
    CHECK(crc32c_combine(crc32c(first), crc32c(second), second.size()) == whole);
  }
}

}  // namespace lerobot::formats::test
