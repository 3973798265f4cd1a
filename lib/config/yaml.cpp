#include <fmt/format.h>

#include <string>
#include <vector>

#include "flow.hpp"
#include "lerobot/config/value.hpp"
#include "lerobot/core/error.hpp"

// The part of YAML that settings are written in. Scalars stay tokens, so the famous guesses of YAML (`no`, `1.50`)
// never happen: the declared type of a setting decides.
namespace lerobot::config {
namespace {

struct Line {
  std::size_t number = 0;
  std::size_t indent = 0;
  std::string text;  ///< without indent, comment and trailing blanks; never empty
};

/// Where a comment begins in `text`, or its end: a `#` at the start or after a blank, outside quotes.
std::size_t comment_start(std::string_view text) {
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = '\0';
    } else if ((c == '"' || c == '\'') &&
               (i == 0 || std::string_view(" \t[{,:").find(text[i - 1]) != std::string_view::npos)) {
      quote = c;
    } else if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      return i;
    }
  }
  return text.size();
}

class YamlReader {
 public:
  YamlReader(std::string_view text, const std::filesystem::path& where) : where_(where) { split(text); }

  Json document() {
    if (lines_.empty()) return Json::object();
    Json root = node(lines_[0].indent, 0);
    if (at_ < lines_.size()) refuse(lines_[at_], "is indented unlike the lines above it");
    return root;
  }

 private:
  [[noreturn]] void refuse(const Line& line, std::string_view why) const {
    fail(ErrorKind::kConfig, "{}: line {}: \"{}\" {}.", where_.string(), line.number, line.text.substr(0, 60), why);
  }

  void split(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = text.find('\n');
      std::string_view raw = text.substr(0, end);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      raw = raw.substr(0, comment_start(raw));
      const std::size_t indent = raw.find_first_not_of(' ');
      const std::size_t last = raw.find_last_not_of(" \t\r");
      if (indent == raw.npos || last == raw.npos || last < indent) continue;
      Line line{number, indent, std::string(raw.substr(indent, last + 1 - indent))};
      if (line.text[0] == '\t') refuse(line, "is indented with a tab; use spaces");
      if (line.text == "---" && lines_.empty()) continue;
      if (line.text == "---" || line.text == "...") refuse(line, "begins a second document; one is expected");
      lines_.push_back(std::move(line));
    }
  }

  /// Position after the `:` that ends the key of a map entry, or npos. The key itself goes to `key`.
  static std::size_t key_end(std::string_view text, std::string& key) {
    if (text[0] == '"' || text[0] == '\'') {
      FlowReader reader(text);
      const auto token = reader.quoted();
      const std::size_t at = reader.position();
      if (!token || at >= text.size() || text[at] != ':' || (at + 1 < text.size() && text[at + 1] != ' '))
        return text.npos;
      key = unquoted(token->get<std::string>());
      return at + 1;
    }
    if (text[0] == '[' || text[0] == '{') return text.npos;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) {
        key = text.substr(0, i);
        return i + 1;
      }
    return text.npos;
  }

  static bool is_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

  /// What the lines from the current one on spell at `indent`.
  Json node(std::size_t indent, int depth) {
    const Line& line = lines_[at_];
    if (depth >= kMaxDepth) refuse(line, "is nested too deeply");
    std::string key;
    if (is_item(line.text)) return list(indent, depth);
    if (key_end(line.text, key) != std::string::npos) return map(indent, depth);
    std::string text = line.text;
    return scalar(std::move(text), lines_[at_++]);
  }

  Json list(std::size_t indent, int depth) {
    Json items = Json::array();
    while (at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_].text)) {
      Line& line = lines_[at_];
      const std::size_t content = line.text.find_first_not_of(' ', 1);
      if (content == std::string::npos) {
        ++at_;
        items.push_back(nested(indent, depth));
      } else {  // what follows the dash is a node of its own, indented by where it stands
        line.indent += content;
        line.text.erase(0, content);
        items.push_back(node(line.indent, depth + 1));
      }
    }
    return items;
  }

  Json map(std::size_t indent, int depth) {
    Json entries = Json::object();
    while (at_ < lines_.size() && lines_[at_].indent == indent) {
      const Line line = lines_[at_];
      std::string key;
      const std::size_t end = key_end(line.text, key);
      if (end == std::string::npos) refuse(line, "is not a `key: value` line");
      if (entries.contains(key)) refuse(line, "gives a key for the second time");
      const std::size_t content = line.text.find_first_not_of(' ', end);
      ++at_;
      if (content != std::string::npos)
        entries[key] = scalar(line.text.substr(content), line);
      else if (at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_].text))
        entries[key] = list(indent, depth + 1);
      else
        entries[key] = nested(indent, depth);
    }
    return entries;
  }

  /// The node that is indented deeper than `indent`, or null when the next line is not.
  Json nested(std::size_t indent, int depth) {
    if (at_ >= lines_.size() || lines_[at_].indent <= indent) return "null";
    return node(lines_[at_].indent, depth + 1);
  }

  /// A scalar or a flow collection, which may go on over the following lines. `line` is where it begins.
  Json scalar(std::string text, const Line& line) {
    if (text[0] == '[' || text[0] == '{') {
      auto tokens = tokens_from_flow(text);
      while (!tokens && at_ < lines_.size() && lines_[at_].indent > 0 && text.size() < 1u << 20) {
        text += ' ' + lines_[at_++].text;
        if (text.back() == ']' || text.back() == '}') tokens = tokens_from_flow(text);
      }
      if (!tokens) refuse(line, "is no complete list or map");
      return *tokens;
    }
    if (text[0] == '"' || text[0] == '\'') {
      FlowReader reader(text);
      const auto token = reader.quoted();
      if (!token || !reader.at_end()) refuse(line, "is no complete quoted text");
      return *token;
    }
    if (std::string_view("|>&*!%@`").find(text[0]) != std::string_view::npos || text.starts_with("? "))
      refuse(line, "uses a form of YAML that settings do not take (block scalar, anchor, tag, complex key)");
    return text;
  }

  const std::filesystem::path& where_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;
};

}  // namespace

Json tokens_from_yaml(std::string_view text, const std::filesystem::path& where) {
  return YamlReader(text, where).document();
}

}  // namespace lerobot::config
