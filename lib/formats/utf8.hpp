#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lerobot::formats {

/// The position of the first byte that does not belong to well-formed UTF-8; none when all do.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Appends a code point below 0x110000 that is no surrogate.
void append_utf8(std::string& text, std::uint32_t code_point);

/// The code point that begins at `position` of well-formed UTF-8; moves `position` behind it.
[[nodiscard]] std::uint32_t next_code_point(std::string_view text, std::size_t& position);

}  // namespace lerobot::formats
