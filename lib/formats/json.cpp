#include "lerobot/formats/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "formats/json_scanner.hpp"
#include "formats/utf8.hpp"
#include "lerobot/formats/mapped_file.hpp"

namespace lerobot::formats {
namespace {

// Builds the tree bottom-up: a value joins its parent when it is complete.
class TreeBuilder final : public JsonEvents {
 public:
  void begin_object() override { open_.push_back({Json::object(), {}}); }
  void key(std::string&& name) override { open_.back().key = std::move(name); }
  void end_object() override { close(); }
  void begin_array() override { open_.push_back({Json::array(), {}}); }
  void end_array() override { close(); }
  void null() override { add(Json(nullptr)); }
  void boolean(bool value) override { add(Json(value)); }
  void integer(std::int64_t value) override { add(Json(value)); }
  void large_integer(std::uint64_t value) override { add(Json(value)); }
  void number(double value) override { add(Json(value)); }
  void string(std::string&& value) override { add(Json(std::move(value))); }

  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  struct Open {
    Json value;
    std::string key;  // of the member that is being read
  };

  void close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    add(std::move(value));
  }

  void add(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Open& parent = open_.back(); parent.value.is_array()) {
      parent.value.get_ref<Json::array_t&>().push_back(std::move(value));
    } else {
      // The container under the ordered map: its own insertion looks every key up by walking the list, and the
      // scanner has refused duplicates already.
      Json::object_t::Container& members = parent.value.get_ref<Json::object_t&>();
      members.emplace_back(std::move(parent.key), std::move(value));
    }
  }

  std::vector<Open> open_;
  Json root_;
};

class PythonWriter {
 public:
  PythonWriter(int indent, bool ascii) : indent_(indent), ascii_(ascii) {}

  void write(const Json& value, int depth) {
    switch (value.type()) {
      case Json::value_t::null:
        out_ += "null";
        break;
      case Json::value_t::boolean:
        out_ += value.get<bool>() ? "true" : "false";
        break;
      case Json::value_t::number_integer:
        out_ += fmt::to_string(value.get<std::int64_t>());
        break;
      case Json::value_t::number_unsigned:
        out_ += fmt::to_string(value.get<std::uint64_t>());
        break;
      case Json::value_t::number_float:
        number(value.get<double>());
        break;
      case Json::value_t::string:
        string(value.get_ref<const std::string&>());
        break;
      case Json::value_t::array:
        array(value, depth);
        break;
      case Json::value_t::object:
        object(value, depth);
        break;
      case Json::value_t::binary:
      case Json::value_t::discarded:
        fail(ErrorKind::kInternal, "dump_python: a {} has no JSON text.", value.type_name());
    }
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void number(double value) {
    if (std::isnan(value)) {
      out_ += "NaN";
    } else if (std::isinf(value)) {
      out_ += value > 0 ? "Infinity" : "-Infinity";
    } else {
      out_ += python_repr(value);
    }
  }

  void string(const std::string& text) {
    if (const auto bad = find_invalid_utf8(text))
      fail(ErrorKind::kInternal, "dump_python: byte {} of a string is not UTF-8.", *bad);
    out_ += '"';
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t start = i;
      const std::uint32_t c = next_code_point(text, i);
      switch (c) {
        case '"':
          out_ += "\\\"";
          continue;
        case '\\':
          out_ += "\\\\";
          continue;
        case '\n':
          out_ += "\\n";
          continue;
        case '\r':
          out_ += "\\r";
          continue;
        case '\t':
          out_ += "\\t";
          continue;
        case '\f':
          out_ += "\\f";
          continue;
        case '\b':
          out_ += "\\b";
          continue;
        default:
          break;
      }
      if (c < 0x20 || (ascii_ && c > 0x7E && c < 0x10000)) {
        out_ += fmt::format("\\u{:04x}", c);
      } else if (ascii_ && c >= 0x10000) {
        out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        out_.append(text, start, i - start);
      }
    }
    out_ += '"';
  }

  void array(const Json& value, int depth) {
    if (value.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    bool first = true;
    for (const Json& element : value) {
      separate(first, depth + 1);
      write(element, depth + 1);
    }
    end_line(depth);
    out_ += ']';
  }

  void object(const Json& value, int depth) {
    if (value.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    bool first = true;
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
      separate(first, depth + 1);
      string(key);
      out_ += ": ";
      write(member, depth + 1);
    }
    end_line(depth);
    out_ += '}';
  }

  void separate(bool& first, int depth) {
    if (!first) out_ += indent_ < 0 ? ", " : ",";
    first = false;
    end_line(depth);
  }

  void end_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(depth), ' ');
  }

  int indent_;
  bool ascii_;
  std::string out_;
};

}  // namespace

Json parse_json(std::string_view text, const std::filesystem::path& where, ErrorKind kind, JsonLimits limits) {
  TreeBuilder tree;
  scan_json(text, where, kind, limits, tree);
  return tree.take();
}

Json read_json(const std::filesystem::path& path, ErrorKind kind, JsonLimits limits) {
  return parse_json(read_small_file(path, limits.max_bytes, kind), path, kind, limits);
}

std::string dump_python(const Json& value, int indent, bool ascii) {
  PythonWriter writer(indent, ascii);
  writer.write(value, 0);
  return writer.take();
}

std::string python_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  // The shortest digits with their exponent, "-d.ddde-05"; Python only lays them out differently.
  std::array<char, 32> buffer{};
  const auto shortest =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific);
  std::string_view text(buffer.data(), static_cast<std::size_t>(shortest.ptr - buffer.data()));
  std::string out;
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const std::string_view exponent_text = text.substr(text[e + 1] == '+' ? e + 2 : e + 1);
  int exponent = 0;
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);

  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace lerobot::formats
