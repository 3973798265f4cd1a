#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "lerobot/core/error.hpp"
#include "lerobot/core/json.hpp"

namespace lerobot::formats {

/// What a JSON text may cost at most. A text beyond a limit is refused before memory is spent on it.
struct JsonLimits {
  std::uint64_t max_bytes = 64ULL << 20;
  int max_depth = 128;  ///< arrays and objects inside one another
};

/// The value that a JSON text describes, its keys in the order of the text.
///
/// Takes what Python's json module writes: NaN, Infinity and -Infinity are numbers. Integers stay integers. An integer
/// beyond 64 bits, a double beyond its range, a key given twice in one object, a lone surrogate and bytes that are not
/// UTF-8 are refused.
///
/// `where` names the text in messages; nothing is read from it.
/// Throws: Error{kind} with `where`, line, column and reason.
[[nodiscard]] Json parse_json(std::string_view text, const std::filesystem::path& where, ErrorKind kind,
                              JsonLimits limits = {});

/// The value in a JSON file; see parse_json.
///
/// Throws: Error{kind} with the path and the system's reason, or with line, column and reason.
[[nodiscard]] Json read_json(const std::filesystem::path& path, ErrorKind kind, JsonLimits limits = {});

/// The text that Python's `json.dumps(value, indent=indent, ensure_ascii=ascii)` gives, byte for byte.
///
/// No newline follows the last character. `indent` < 0 gives Python's one-line form.
/// Throws: Error{kInternal} when a string is not UTF-8.
[[nodiscard]] std::string dump_python(const Json& value, int indent, bool ascii);

/// The text of Python's `repr(number)`: the shortest that parses back to the same double, always with a `.`, an
/// exponent, or as `inf`, `-inf`, `nan`.
[[nodiscard]] std::string python_repr(double number);

}  // namespace lerobot::formats
