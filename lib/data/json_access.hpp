#pragma once

#include <cstdint>
#include <string>

#include "lerobot/core/error.hpp"
#include "lerobot/core/json.hpp"

namespace lerobot::data {

inline std::int64_t json_int(const Json& object, const char* key, std::int64_t fallback, const std::string& where) {
  const auto it = object.find(key);
  if (it == object.end()) return fallback;
  if (!it->is_number_integer())
    fail(ErrorKind::kDataset, "{}: \"{}\" is {}; expected an integer.", where, key, it->dump());
  return it->get<std::int64_t>();
}

inline std::string json_string(const Json& object, const char* key, const std::string& fallback,
                               const std::string& where) {
  const auto it = object.find(key);
  if (it == object.end()) return fallback;
  if (it->is_null()) return {};
  if (!it->is_string()) fail(ErrorKind::kDataset, "{}: \"{}\" is {}; expected text.", where, key, it->dump());
  return it->get<std::string>();
}

}  // namespace lerobot::data
