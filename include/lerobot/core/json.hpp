#pragma once

#include <nlohmann/json.hpp>

namespace lerobot {

/// JSON with its keys in the order of the file: what we write must have the key order of LeRobot (Python).
using Json = nlohmann::ordered_json;

}  // namespace lerobot
