#pragma once
// core: the words every room speaks.
//   Error, ErrorKind, fail   the one exception type and how it maps to exit codes
//   DType                    element types, by the names of safetensors and torch; no tensor library needed
//   Json, Field              ordered JSON and the declaration of a setting
//   require_like             saved JSON state against the structure of the running object
#include "lerobot/core/dtype.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/core/field.hpp"
#include "lerobot/core/json.hpp"
#include "lerobot/core/strict_json.hpp"
