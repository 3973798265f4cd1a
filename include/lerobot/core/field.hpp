#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot {

/// What text a setting takes; see the value grammar of the command line.
enum class FieldType { kBool, kInt, kFloat, kString, kIntList, kFloatList, kStringList, kStringListOrString, kStringMap, kJson };

/// The declaration of one setting: its key in JSON files and flags, its type, its default.
struct Field {
  std::string name;
  FieldType type = FieldType::kString;
  Json default_value;
  bool optional = false;     ///< `null` is a legal value.
  int tuple_size = -1;       ///< For lists: exactly this many items; -1: any number.
  std::string help;          ///< One line for `--help`.
};

}  // namespace lerobot
