#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lerobot/core/field.hpp"
#include "lerobot/core/json.hpp"

// Text becomes a typed value in two moves. First every source (a flag, a JSON file, a YAML file) becomes a tree of
// tokens: objects and arrays whose leaves are strings that hold the source text, quotes included (`1e-4`, `"12"`,
// `null`). Then `decode_value` reads a leaf by the type that the setting is declared with. So a value means the same
// wherever it was written.
namespace lerobot::config {

/// The tokens of a JSON value. A JSON null stays null.
[[nodiscard]] Json tokens_from_json(const Json& value);

/// The tokens of one YAML flow list or map, of which JSON is a part: `[A, "B"]`, `{cpu_offload: true}`.
///
/// Nothing when `text` is anything else: a scalar, an unclosed bracket, a key given twice, more than 64 levels.
[[nodiscard]] std::optional<Json> tokens_from_flow(std::string_view text);

/// The tokens of a YAML document: block and flow maps and lists, plain and quoted scalars, comments.
///
/// Throws: Error{kConfig} with `where` and the line, also for what settings never need: anchors, tags, block scalars,
/// several documents.
[[nodiscard]] Json tokens_from_yaml(std::string_view text, const std::filesystem::path& where);

/// The value that `tokens` spell for a setting of the type of `field`.
///
/// `name` is the dotted name for messages.
/// Throws: Error{kConfig}: "`steps`: Couldn't parse 'abc' into an int".
[[nodiscard]] Json decode_value(const Field& field, std::string_view name, const Json& tokens);

/// The name of a setting's type for `--help`: "int", "list of str or null", "{no,bf16,fp16}".
[[nodiscard]] std::string type_name(const Field& field);

}  // namespace lerobot::config
