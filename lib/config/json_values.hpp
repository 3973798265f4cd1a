#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lerobot/config/train_config.hpp"

// Members to JSON values and back. Reading takes decoded values only, so types are known to fit. The overloads for
// single types stand before the template for std::optional, which has to see them.
namespace lerobot::config {

using Names = std::vector<std::string>;
using NameMap = std::vector<std::pair<std::string, std::string>>;

template <typename T>
Json to_value(const T& value) {
  if constexpr (NamedEnum<T>)
    return std::string(text(value));
  else
    return value;
}
inline Json to_value(const std::variant<Names, std::string>& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}
inline Json to_value(const NameMap& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}
inline Json to_value(const std::vector<ImageTransform>& transforms) {
  Json object = Json::object();
  for (const ImageTransform& t : transforms)
    object[t.name] = {{"weight", t.weight}, {"type", t.type}, {"kwargs", t.kwargs}};
  return object;
}
template <typename T>
Json to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : Json();
}

template <typename T>
void from_value(const Json& json, T& value) {
  if constexpr (NamedEnum<T>) {
    const auto word = json.get<std::string>();
    for (const auto& name : kEnumNames<T>)
      if (name.text == word) value = name.value;
  } else {
    value = json.get<T>();
  }
}
inline void from_value(const Json& json, std::variant<Names, std::string>& value) {
  if (json.is_string())
    value = json.get<std::string>();
  else
    value = json.get<Names>();
}
inline void from_value(const Json& json, NameMap& map) {
  map.clear();
  for (const auto& [key, value] : json.items()) map.emplace_back(key, value.get<std::string>());
}
/// Throws Error{kConfig} for a transform that is not {weight, type, kwargs}.
void from_value(const Json& json, std::vector<ImageTransform>& transforms);
template <typename T>
void from_value(const Json& json, std::optional<T>& value) {
  value.reset();
  if (!json.is_null()) from_value(json, value.emplace());
}

}  // namespace lerobot::config
