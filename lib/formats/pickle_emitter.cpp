#include "formats/pickle_emitter.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "lerobot/core/error.hpp"

namespace lerobot::formats {

PickleEmitter::PickleEmitter(int protocol) : protocol_(protocol) {
  out_ = {'\x80', static_cast<char>(protocol)};
  if (protocol_ >= 4) next_frame();
}

void PickleEmitter::next_frame() {
  close_frame();
  out_.push_back('\x95');
  little_endian(std::uint64_t{0});
  frame_ = out_.size();
}

void PickleEmitter::close_frame() {
  if (frame_ == 0) return;
  const std::uint64_t nbytes = out_.size() - frame_;
  std::memcpy(out_.data() + frame_ - sizeof(nbytes), &nbytes, sizeof(nbytes));
}

void PickleEmitter::integer(std::int64_t value) {
  if (value >= 0 && value <= 0xFF) {
    opcode('K');
    little_endian(static_cast<std::uint8_t>(value));
  } else if (value >= 0 && value <= 0xFFFF) {
    opcode('M');
    little_endian(static_cast<std::uint16_t>(value));
  } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
    opcode('J');
    little_endian(static_cast<std::int32_t>(value));
  } else {
    // The fewest bytes of two's complement that keep the sign.
    std::size_t nbytes = 8;
    while (nbytes > 1 && (value >> (8 * (nbytes - 1) - 1) == 0 || value >> (8 * (nbytes - 1) - 1) == -1)) --nbytes;
    opcode('\x8a');
    out_.push_back(static_cast<char>(nbytes));
    out_.append(reinterpret_cast<const char*>(&value), nbytes);
  }
}

void PickleEmitter::number(double value) {
  opcode('G');
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) out_.push_back(static_cast<char>(bits >> shift & 0xFF));
}

void PickleEmitter::string(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max())
    fail(ErrorKind::kInternal, "pickle: a string of {} bytes; at most 4 GiB are written.", text.size());
  if (protocol_ >= 4 && text.size() < 256) {
    opcode('\x8c');
    little_endian(static_cast<std::uint8_t>(text.size()));
  } else {
    opcode('X');
    little_endian(static_cast<std::uint32_t>(text.size()));
  }
  out_ += text;
}

void PickleEmitter::global(std::string_view module, std::string_view name) {
  if (protocol_ >= 4) {
    string(module);
    string(name);
    opcode('\x93');
  } else {
    opcode('c');
    out_.append(module).append("\n").append(name).append("\n");
  }
}

void PickleEmitter::tuple(std::size_t count) {
  if (count == 0) return empty_tuple();
  opcode(count == 1 ? '\x85' : count == 2 ? '\x86' : count == 3 ? '\x87' : 't');
}

std::uint32_t PickleEmitter::memoize() {
  if (protocol_ >= 4) {
    opcode('\x94');
  } else if (memo_ < 256) {
    opcode('q');
    little_endian(static_cast<std::uint8_t>(memo_));
  } else {
    opcode('r');
    little_endian(memo_);
  }
  return memo_++;
}

void PickleEmitter::recall(std::uint32_t number) {
  if (number < 256) {
    opcode('h');
    little_endian(static_cast<std::uint8_t>(number));
  } else {
    opcode('j');
    little_endian(number);
  }
}

std::string PickleEmitter::finish() {
  opcode('.');
  close_frame();
  return std::move(out_);
}

}  // namespace lerobot::formats
