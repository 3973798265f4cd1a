#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lerobot::formats {

/// Appends pickle opcodes to a buffer, in the form that Python's pickler chooses for each value.
class PickleEmitter {
 public:
  /// Protocol 2, without frames, or 4, with them.
  explicit PickleEmitter(int protocol);

  void none() { opcode('N'); }
  void boolean(bool value) { opcode(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  void number(double value);
  void string(std::string_view text);
  void global(std::string_view module, std::string_view name);
  void mark() { opcode('('); }
  void empty_tuple() { opcode(')'); }
  void empty_list() { opcode(']'); }
  void empty_dict() { opcode('}'); }
  /// Makes a tuple of the last `count` values; for more than three, a mark must stand in front of them.
  void tuple(std::size_t count);
  void append() { opcode('a'); }
  void appends() { opcode('e'); }
  void set_item() { opcode('s'); }
  void set_items() { opcode('u'); }
  void reduce() { opcode('R'); }
  void new_object() { opcode('\x81'); }
  void build() { opcode('b'); }
  void persistent_id() { opcode('Q'); }

  /// Remembers the last value and gives its number.
  std::uint32_t memoize();
  void recall(std::uint32_t number);

  /// Ends the pickle and gives it.
  [[nodiscard]] std::string finish();

 private:
  void opcode(char code) {
    if (protocol_ >= 4 && out_.size() - frame_ >= kFrameBytes) next_frame();
    out_.push_back(code);
  }
  void next_frame();
  void close_frame();
  template <typename Number>
  void little_endian(Number value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  static constexpr std::size_t kFrameBytes = 64 << 10;
  int protocol_;
  std::string out_;
  std::size_t frame_ = 0;  ///< where the content of the open frame begins
  std::uint32_t memo_ = 0;
};

}  // namespace lerobot::formats
