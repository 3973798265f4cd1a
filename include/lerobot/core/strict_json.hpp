#pragma once

#include <string>
#include <string_view>

#include "lerobot/core/error.hpp"
#include "lerobot/core/json.hpp"

namespace lerobot {

/// "integer", "float", "bool", "string", "null", "array" or "object": LeRobot (Python) keeps them all apart.
inline std::string_view json_kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "bool";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "integer";
    case Json::value_t::number_float:
      return "float";
    case Json::value_t::string:
      return "string";
    case Json::value_t::array:
      return "array";
    case Json::value_t::object:
      return "object";
    default:
      return "unreadable value";
  }
}

/// Returns if `got` has the structure of `running`: the same keys, array lengths and primitive kinds at every place.
///
/// Saved optimizer groups, schedules and scaler states are read so; the state of the running object is the template.
///
/// Throws: Error{kCheckpoint} with the place of the first difference, both sides of it, and `where` (the file).
/// Source: LeRobot (Python), `deserialize_json_into_object`.
inline void require_like(const Json& running, const Json& got, std::string_view where, const std::string& place = "") {
  const std::string at = place.empty() ? "the top level" : place;
  if (json_kind(running) != json_kind(got))
    fail(ErrorKind::kCheckpoint, "{}: {} is {} ({}), the running object has {} ({}); the kinds must be equal.", where,
         at, json_kind(got), got.dump(), json_kind(running), running.dump());
  if (running.is_object()) {
    for (const auto& [key, value] : got.items())
      if (!running.contains(key))
        fail(ErrorKind::kCheckpoint,
             "{}: {} has the key \"{}\", which the running object does not have. The checkpoint "
             "was made with other settings.",
             where, at, key);
    for (const auto& [key, value] : running.items()) {
      if (!got.contains(key))
        fail(ErrorKind::kCheckpoint,
             "{}: {} lacks the key \"{}\", which the running object has. The checkpoint was made "
             "with other settings.",
             where, at, key);
      require_like(value, got.at(key), where, place.empty() ? key : place + "." + key);
    }
  } else if (running.is_array()) {
    if (running.size() != got.size())
      fail(ErrorKind::kCheckpoint,
           "{}: {} has {} items, the running object has {}. The checkpoint was made with other "
           "settings.",
           where, at, got.size(), running.size());
    for (std::size_t i = 0; i < running.size(); ++i)
      require_like(running[i], got[i], where, place + "[" + std::to_string(i) + "]");
  }
}

}  // namespace lerobot
