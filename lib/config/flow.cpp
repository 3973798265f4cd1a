#include "flow.hpp"

#include <string>

#include "lerobot/config/value.hpp"

namespace lerobot::config {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool ends_plain(char c) { return c == ',' || c == ']' || c == '}' || c == '[' || c == '{'; }

std::optional<Json> token_of(std::string_view content) {
  try {
    return Json(Json(content).dump());
  } catch (const Json::exception&) {
    return std::nullopt;  // not UTF-8
  }
}

}  // namespace

bool is_quoted(std::string_view token) {
  return token.size() >= 2 && token.front() == '"' && token.back() == '"' && Json::accept(token);
}

std::string unquoted(const std::string& token) {
  return is_quoted(token) ? Json::parse(token).get<std::string>() : token;
}

void FlowReader::skip_blanks() {
  while (!at_end() && is_blank(text_[at_])) ++at_;
}

bool FlowReader::take(char c) {
  skip_blanks();
  if (peek() != c || at_end()) return false;
  ++at_;
  return true;
}

std::optional<Json> FlowReader::collection(int depth) {
  skip_blanks();
  if (depth >= kMaxDepth) return std::nullopt;
  if (peek() == '[') return list(depth);
  if (peek() == '{') return map(depth);
  return std::nullopt;
}

std::optional<Json> FlowReader::quoted() {
  const std::size_t begin = at_;
  const char quote = peek();
  ++at_;
  if (quote == '"') {
    while (!at_end() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = text_.size();
      return std::nullopt;
    }
    ++at_;
    const std::string_view token = text_.substr(begin, at_ - begin);
    return is_quoted(token) ? std::optional<Json>(token) : std::nullopt;
  }
  std::string content;  // single quotes: '' stands for one of them, nothing else is special
  while (!at_end()) {
    const char c = text_[at_++];
    if (c != '\'') {
      content += c;
    } else if (peek() == '\'' && !at_end()) {
      content += text_[at_++];
    } else {
      return token_of(content);
    }
  }
  return std::nullopt;
}

std::optional<Json> FlowReader::plain() {
  const std::size_t begin = at_;
  while (!at_end() && !ends_plain(text_[at_])) {
    const bool key_ends =
        text_[at_] == ':' && (at_ + 1 == text_.size() || is_blank(text_[at_ + 1]) || ends_plain(text_[at_ + 1]));
    const bool comment = text_[at_] == '#' && at_ > begin && is_blank(text_[at_ - 1]);
    if (key_ends || comment) break;
    ++at_;
  }
  std::string_view token = text_.substr(begin, at_ - begin);
  while (!token.empty() && is_blank(token.back())) token.remove_suffix(1);
  if (token.empty() || token.find('"') != token.npos) return std::nullopt;
  return Json(token);
}

std::optional<Json> FlowReader::value(int depth) {
  skip_blanks();
  if (at_end()) return std::nullopt;
  if (peek() == '[' || peek() == '{') return collection(depth);
  return peek() == '"' || peek() == '\'' ? quoted() : plain();
}

std::optional<Json> FlowReader::list(int depth) {
  Json items = Json::array();
  take('[');
  while (!take(']')) {
    auto item = value(depth + 1);
    if (!item) return std::nullopt;
    items.push_back(std::move(*item));
    if (!take(',')) {
      if (take(']')) break;
      return std::nullopt;
    }
  }
  return items;
}

std::optional<Json> FlowReader::map(int depth) {
  Json entries = Json::object();
  take('{');
  while (!take('}')) {
    skip_blanks();
    if (at_end() || peek() == '[' || peek() == '{') return std::nullopt;
    const auto key = peek() == '"' || peek() == '\'' ? quoted() : plain();
    if (!key || !take(':')) return std::nullopt;
    const std::string name = unquoted(key->get<std::string>());
    skip_blanks();
    auto entry = peek() == ',' || peek() == '}' ? std::optional<Json>("null") : value(depth + 1);
    if (!entry || entries.contains(name)) return std::nullopt;
    entries[name] = std::move(*entry);
    if (!take(',')) {
      if (take('}')) break;
      return std::nullopt;
    }
  }
  return entries;
}

std::optional<Json> tokens_from_flow(std::string_view text) {
  FlowReader reader(text);
  auto result = reader.collection();
  reader.skip_blanks();
  return reader.at_end() ? result : std::nullopt;
}

}  // namespace lerobot::config
