#include "formats/json_scanner.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/utf8.hpp"

namespace lerobot::formats {
namespace {

// The keys of one object. Most have a handful; a hostile one may have millions, which a tree takes in n log n whatever
// the keys are (a hash table can be made to collide).
class KeySet {
 public:
  /// False when the key was there before.
  bool insert(const std::string& key) {
    if (many_.empty()) {
      if (std::find(few_.begin(), few_.end(), key) != few_.end()) return false;
      few_.push_back(key);
      if (few_.size() > kFew) {
        many_.insert(few_.begin(), few_.end());
        few_.clear();
      }
      return true;
    }
    return many_.insert(key).second;
  }

 private:
  static constexpr std::size_t kFew = 16;
  std::vector<std::string> few_;
  std::set<std::string> many_;
};

class Scanner {
 public:
  Scanner(std::string_view text, const std::filesystem::path& where, ErrorKind kind, JsonLimits limits,
          JsonEvents& events)
      : text_(text), where_(where), kind_(kind), limits_(limits), events_(events) {}

  void run() {
    if (text_.size() > limits_.max_bytes)
      fail(kind_, "{}: JSON of {} bytes; at most {} are read.", where_.string(), text_.size(), limits_.max_bytes);
    if (const auto bad = find_invalid_utf8(text_)) refuse(*bad, "a byte that is not UTF-8");
    value(0);
    skip_space();
    if (at_ < text_.size()) refuse(at_, "text after the end of the value");
  }

 private:
  [[noreturn]] void refuse(std::size_t position, std::string_view reason) const {
    const std::string_view before = text_.substr(0, position);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const auto column = 1 + std::count_if(before.begin() + static_cast<std::ptrdiff_t>(start), before.end(),
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    fail(kind_, "{}: line {} column {}: not valid JSON: {}.", where_.string(), line, column, reason);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void value(int depth) {
    skip_space();
    if (at_ == text_.size()) refuse(at_, "the text ends where a value is expected");
    if (depth >= limits_.max_depth && (text_[at_] == '{' || text_[at_] == '['))
      refuse(at_, fmt::format("more than {} levels of arrays and objects", limits_.max_depth));
    switch (text_[at_]) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return events_.string(quoted());
      default:
        break;
    }
    if (take("null")) return events_.null();
    if (take("true")) return events_.boolean(true);
    if (take("false")) return events_.boolean(false);
    if (take("NaN")) return events_.number(std::numeric_limits<double>::quiet_NaN());
    if (take("Infinity")) return events_.number(std::numeric_limits<double>::infinity());
    if (take("-Infinity")) return events_.number(-std::numeric_limits<double>::infinity());
    number();
  }

  void object(int depth) {
    ++at_;
    events_.begin_object();
    KeySet keys;
    skip_space();
    if (!take("}")) {
      while (true) {
        skip_space();
        const std::size_t start = at_;
        if (at_ == text_.size() || text_[at_] != '"') refuse(at_, "expected a property name in double quotes");
        std::string name = quoted();
        if (!keys.insert(name)) refuse(start, fmt::format("the key \"{}\" appears twice", name));
        events_.key(std::move(name));
        skip_space();
        if (!take(":")) refuse(at_, "expected ':' after a property name");
        value(depth + 1);
        skip_space();
        if (take("}")) break;
        if (!take(",")) refuse(at_, "expected ',' or '}' after a property");
      }
    }
    events_.end_object();
  }

  void array(int depth) {
    ++at_;
    events_.begin_array();
    skip_space();
    if (!take("]")) {
      while (true) {
        value(depth + 1);
        skip_space();
        if (take("]")) break;
        if (!take(",")) refuse(at_, "expected ',' or ']' after an array element");
      }
    }
    events_.end_array();
  }

  std::string quoted() {
    const std::size_t start = at_++;
    std::string out;
    while (true) {
      const std::size_t plain = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      out.append(text_.substr(plain, at_ - plain));
      if (at_ == text_.size()) refuse(start, "a string that does not end");
      if (text_[at_] == '"') {
        ++at_;
        return out;
      }
      if (text_[at_] != '\\') refuse(at_, "a control character in a string; write it as an escape");
      escape(out);
    }
  }

  void escape(std::string& out) {
    const std::size_t start = at_++;
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out.push_back(c);
        return;
      case 'b':
        out.push_back('\b');
        return;
      case 'f':
        out.push_back('\f');
        return;
      case 'n':
        out.push_back('\n');
        return;
      case 'r':
        out.push_back('\r');
        return;
      case 't':
        out.push_back('\t');
        return;
      case 'u':
        break;
      default:
        refuse(start, "an unknown escape in a string");
    }
    std::uint32_t code_point = four_hex(start);
    if (code_point >= 0xD800 && code_point < 0xDC00 && take("\\u")) {
      const std::uint32_t low = four_hex(start);
      if (low < 0xDC00 || low > 0xDFFF) refuse(start, "a surrogate without its other half");
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    } else if (code_point >= 0xD800 && code_point < 0xE000) {
      refuse(start, "a surrogate without its other half");
    }
    append_utf8(out, code_point);
  }

  std::uint32_t four_hex(std::size_t start) {
    std::uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4)
      refuse(start, "expected four hexadecimal digits after \\u");
    at_ += 4;
    return value;
  }

  std::size_t take_digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - start;
  }

  void number() {
    const std::size_t start = at_;
    take("-");
    const bool leading_zero = at_ < text_.size() && text_[at_] == '0';
    const std::size_t digits = take_digits();
    if (digits == 0) refuse(start, "expected a value");
    if (leading_zero && digits > 1) refuse(start, "a number with a leading zero");
    bool is_integer = true;
    if (take(".")) {
      is_integer = false;
      if (take_digits() == 0) refuse(start, "a number that ends with its decimal point");
    }
    if (take("e") || take("E")) {
      is_integer = false;
      if (!take("+")) take("-");
      if (take_digits() == 0) refuse(start, "a number without the digits of its exponent");
    }
    const std::string_view word = text_.substr(start, at_ - start);
    const char* const end = word.data() + word.size();
    if (is_integer) {
      std::int64_t value = 0;
      if (std::from_chars(word.data(), end, value).ec == std::errc()) return events_.integer(value);
      std::uint64_t large = 0;
      if (word[0] != '-' && std::from_chars(word.data(), end, large).ec == std::errc())
        return events_.large_integer(large);
      refuse(start, "an integer that does not fit 64 bits");
    }
    double value = 0;
    if (std::from_chars(word.data(), end, value).ec != std::errc())
      refuse(start, "a number outside the range of a double");
    events_.number(value);
  }

  std::string_view text_;
  const std::filesystem::path& where_;
  ErrorKind kind_;
  JsonLimits limits_;
  JsonEvents& events_;
  std::size_t at_ = 0;
};

}  // namespace

void scan_json(std::string_view text, const std::filesystem::path& where, ErrorKind kind, JsonLimits limits,
               JsonEvents& events) {
  Scanner(text, where, kind, limits, events).run();
}

}  // namespace lerobot::formats
