#pragma once

#include <optional>
#include <string_view>

#include "lerobot/core/json.hpp"

namespace lerobot::config {

inline constexpr int kMaxDepth = 64;  ///< lists and maps inside one another, in any source

/// Reads the flow form of YAML from a text, token by token. See tokens_from_flow for what it takes.
class FlowReader {
 public:
  explicit FlowReader(std::string_view text) : text_(text) {}

  /// A list or a map at the read position; nothing when there is none.
  std::optional<Json> collection(int depth = 0);
  /// A quoted scalar at the read position, as a token: the JSON form of its text.
  std::optional<Json> quoted();
  void skip_blanks();
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] std::size_t position() const { return at_; }

 private:
  std::optional<Json> value(int depth);
  std::optional<Json> plain();
  std::optional<Json> list(int depth);
  std::optional<Json> map(int depth);
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c);

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The text that a quoted token stands for, or the token itself when it is plain.
std::string unquoted(const std::string& token);
/// Whether a token was quoted in its source: a complete JSON string.
bool is_quoted(std::string_view token);

}  // namespace lerobot::config
