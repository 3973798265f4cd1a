#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot {

/// What text a setting takes; see the value grammar of the command line.
enum class FieldType {
  kBool,
  kInt,
  kFloat,
  kString,
  kIntList,
  kFloatList,
  kStringList,
  kStringListOrString,
  kStringMap,
  kJson,
  kEnum,  ///< one of `Field::choices`
};

/// One legal value of an enum setting.
struct Choice {
  std::string value;        ///< what files hold: "safetensors_dcp"
  std::string member = {};  ///< a second spelling, LeRobot's (Python) name of the member: "SAFETENSORS_AND_DCP"
};

/// The declaration of one setting: its key in JSON files and flags, its type, its default.
struct Field {
  std::string name;
  FieldType type = FieldType::kString;
  Json default_value = {};
  bool optional = false;             ///< `null` is a legal value.
  int tuple_size = -1;               ///< For lists: exactly this many items; -1: any number.
  std::string help = {};             ///< One line for `--help`.
  std::vector<Choice> choices = {};  ///< For kEnum: the legal values.
  bool required = false;             ///< There is no default: leaving it out is an error.
  bool int_spelling =
      false;  ///< For kBool: `0` and `1` are taken too, as LeRobot (Python) writes them for this setting.
};

}  // namespace lerobot
