#include "lerobot/config/value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "flow.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::config {
namespace {

// In here `where` is the name in backquotes, and for an item of a list its index: "`dataset.episodes`: item 1".

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());  // the JSON library has no other check
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

/// A token as messages show it: without its quotes, not too long.
std::string shown(const Json& tokens) {
  std::string text = tokens.is_string() ? unquoted(tokens.get<std::string>())
                                        : tokens.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return is_utf8(text) ? text : "(bytes that are not UTF-8)";
}

[[noreturn]] void refuse(std::string_view where, const Json& tokens, std::string_view into) {
  fail(ErrorKind::kConfig, "{}: Couldn't parse '{}' into {}", where, shown(tokens), into);
}

const std::string* leaf(const Json& tokens) {
  return tokens.is_string() ? tokens.get_ptr<const std::string*>() : nullptr;
}

bool is_null_token(const Json& tokens) {
  const std::string* raw = leaf(tokens);
  return tokens.is_null() || (raw && (*raw == "null" || *raw == "~"));
}

std::optional<bool> as_bool(std::string_view raw) {
  for (const char* yes : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
    if (raw == yes) return true;
  for (const char* no : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
    if (raw == no) return false;
  return std::nullopt;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// An optional sign and digits with single `_` between them; nothing outside of 64 bits.
std::optional<std::int64_t> as_int(std::string_view raw) {
  std::string digits;
  std::size_t i = 0;
  if (i < raw.size() && (raw[i] == '+' || raw[i] == '-')) {
    if (raw[i] == '-') digits += '-';
    ++i;
  }
  if (i >= raw.size() || !is_digit(raw[i]) || !is_digit(raw.back())) return std::nullopt;
  for (; i < raw.size(); ++i) {
    if (raw[i] == '_' && raw[i - 1] != '_') continue;
    if (!is_digit(raw[i])) return std::nullopt;
    digits += raw[i];
  }
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> as_float(std::string_view raw) {
  const bool negative = raw.starts_with('-');
  if (negative || raw.starts_with('+')) raw.remove_prefix(1);
  std::string lower(raw);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  double value = 0.0;
  if (lower == "inf" || lower == "infinity" || lower == ".inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan" || lower == ".nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (lower.empty() || (!is_digit(lower[0]) && lower[0] != '.')) return std::nullopt;
    const auto result = std::from_chars(lower.data(), lower.data() + lower.size(), value);
    if (result.ptr != lower.data() + lower.size() ||
        (result.ec != std::errc() && result.ec != std::errc::result_out_of_range))
      return std::nullopt;
    // Too large is refused; too small to tell from zero is zero.
    if (result.ec == std::errc::result_out_of_range) {
      value = std::strtod(lower.c_str(), nullptr);
      if (std::isinf(value)) return std::nullopt;
    }
  }
  return negative ? -value : value;
}

Json decode_scalar(const Field& field, FieldType type, std::string_view where, const Json& tokens);

/// A list whose items have the type `item`. A flag's text is read as a flow list first.
Json decode_list(const Field& field, FieldType item, std::string_view where, const Json& tokens, const char* into) {
  Json list = tokens;
  if (const std::string* raw = leaf(tokens)) list = tokens_from_flow(*raw).value_or(Json());
  if (!list.is_array()) refuse(where, tokens, into);
  if (field.tuple_size >= 0 && list.size() != static_cast<std::size_t>(field.tuple_size))
    fail(ErrorKind::kConfig, "{}: Expected {} items, got {}", where, field.tuple_size, list.size());
  Json decoded = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i)
    decoded.push_back(decode_scalar(field, item, fmt::format("{}: item {}", where, i), list[i]));
  return decoded;
}

/// JSON with no declared type: plain tokens are taken as YAML's core types.
Json decode_json(std::string_view where, const Json& tokens, int depth) {
  if (depth > kMaxDepth) fail(ErrorKind::kConfig, "{}: lists and maps are nested too deeply", where);
  if (tokens.is_object() || tokens.is_array()) {
    Json decoded = tokens;
    for (auto& item : decoded) item = decode_json(where, item, depth + 1);
    return decoded;
  }
  const std::string* raw = leaf(tokens);
  if (!raw || is_null_token(tokens)) return nullptr;
  if (is_quoted(*raw)) return unquoted(*raw);
  if (*raw == "true" || *raw == "false") return *raw == "true";
  if (const auto number = as_int(*raw)) return *number;
  if (const auto number = as_float(*raw)) return *number;
  return decode_scalar({}, FieldType::kString, where, tokens);
}

Json decode_map(std::string_view where, const Json& tokens) {
  Json map = tokens;
  if (const std::string* raw = leaf(tokens)) map = tokens_from_flow(*raw).value_or(Json());
  if (!map.is_object()) refuse(where, tokens, "a map of str to str");
  Json decoded = Json::object();
  for (const auto& [key, value] : map.items())
    decoded[key] = decode_scalar({}, FieldType::kString, fmt::format("{}: \"{}\"", where, key), value);
  return decoded;
}

Json decode_enum(const Field& field, std::string_view where, const Json& tokens) {
  std::vector<std::string> legal;
  for (const Choice& choice : field.choices) legal.push_back(choice.value);
  if (const std::string* raw = leaf(tokens)) {
    const std::string word = unquoted(*raw);
    for (const Choice& choice : field.choices)
      if (word == choice.value || (!choice.member.empty() && word == choice.member)) return choice.value;
    // `resume` takes true, false and a third word: the other spellings of a bool are legal there as well.
    if (const auto flag = as_bool(word); flag && std::count(legal.begin(), legal.end(), "true") != 0)
      return *flag ? "true" : "false";
  }
  fail(ErrorKind::kConfig, "{}: Couldn't parse '{}'; expected one of {}", where, shown(tokens), fmt::join(legal, ", "));
}

Json decode_scalar(const Field& field, FieldType type, std::string_view where, const Json& tokens) {
  const std::string* raw = leaf(tokens);
  switch (type) {
    case FieldType::kBool:
      if (raw)
        if (const auto value = as_bool(*raw)) return *value;
      if (raw && field.int_spelling && (*raw == "0" || *raw == "1")) return *raw == "1";
      refuse(where, tokens, "a bool (true or false)");
    case FieldType::kInt:
      if (raw)
        if (const auto value = as_int(unquoted(*raw))) return *value;
      refuse(where, tokens, "an int");
    case FieldType::kFloat:
      if (raw)
        if (const auto value = as_float(unquoted(*raw))) return *value;
      refuse(where, tokens, "a float");
    default:
      if (!raw) refuse(where, tokens, "a str");
      std::string value = unquoted(*raw);
      if (!is_utf8(value)) refuse(where, tokens, "a str");
      return value;
  }
}

}  // namespace

Json tokens_from_json(const Json& value) {
  if (value.is_null()) return value;
  if (!value.is_structured()) return value.dump();
  Json tokens = value;
  for (auto& item : tokens) item = tokens_from_json(item);
  return tokens;
}

Json decode_value(const Field& field, std::string_view name, const Json& tokens) {
  if (field.optional && is_null_token(tokens)) return nullptr;
  const std::string where = fmt::format("`{}`", name);
  switch (field.type) {
    case FieldType::kIntList:
      return decode_list(field, FieldType::kInt, where, tokens, "a list of int, for example [0, 1]");
    case FieldType::kFloatList:
      return decode_list(field, FieldType::kFloat, where, tokens, "a list of float, for example [0.9, 0.999]");
    case FieldType::kStringList:
      return decode_list(field, FieldType::kString, where, tokens, "a list of str, for example [\"A\", \"B\"]");
    case FieldType::kStringListOrString: {
      const std::string* raw = leaf(tokens);
      const bool list = raw ? raw->starts_with('[') && tokens_from_flow(*raw) : tokens.is_array();
      return list ? decode_list(field, FieldType::kString, where, tokens, "a list of str")
                  : decode_scalar(field, FieldType::kString, where, tokens);
    }
    case FieldType::kStringMap:
      return decode_map(where, tokens);
    case FieldType::kJson: {
      const std::string* raw = leaf(tokens);
      auto structure = raw ? tokens_from_flow(*raw) : std::optional(tokens);
      if (!structure || !structure->is_object()) refuse(where, tokens, "a map");
      return decode_json(where, *structure, 0);
    }
    case FieldType::kEnum:
      return decode_enum(field, where, tokens);
    default:
      return decode_scalar(field, field.type, where, tokens);
  }
}

std::string type_name(const Field& field) {
  const auto base = [&]() -> std::string {
    switch (field.type) {
      case FieldType::kBool:
        return "bool";
      case FieldType::kInt:
        return "int";
      case FieldType::kFloat:
        return "float";
      case FieldType::kString:
        return "str";
      case FieldType::kIntList:
        return "list of int";
      case FieldType::kFloatList:
        return field.tuple_size < 0 ? "list of float" : fmt::format("{} floats", field.tuple_size);
      case FieldType::kStringList:
        return "list of str";
      case FieldType::kStringListOrString:
        return "list of str, or str";
      case FieldType::kStringMap:
        return "map";
      case FieldType::kJson:
        return "map";
      case FieldType::kEnum:
        break;
    }
    std::vector<std::string> legal;
    for (const Choice& choice : field.choices) legal.push_back(choice.value);
    return fmt::format("{{{}}}", fmt::join(legal, ","));
  }();
  return field.optional ? base + " or null" : base;
}

}  // namespace lerobot::config
