#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "lerobot/core/error.hpp"
#include "lerobot/formats/json.hpp"

namespace lerobot::formats {

/// Receives the parts of a JSON text in their order. Readers of large files build their own types from it, with no
/// tree in between.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void begin_object() = 0;
  virtual void key(std::string&& name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void integer(std::int64_t value) = 0;
  virtual void large_integer(std::uint64_t value) = 0;  ///< one that fits no std::int64_t
  virtual void number(double value) = 0;
  virtual void string(std::string&& value) = 0;
};

/// Walks through a JSON text; see parse_json for what is refused.
void scan_json(std::string_view text, const std::filesystem::path& where, ErrorKind kind, JsonLimits limits,
               JsonEvents& events);

}  // namespace lerobot::formats
