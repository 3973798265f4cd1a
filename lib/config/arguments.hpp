#pragma once

#include <span>
#include <string>
#include <vector>

#include "lerobot/config/schema.hpp"

namespace lerobot::config {

/// One `--name=text` or `--name text`.
struct Flag {
  std::string name;
  std::string text;
  std::string word;  ///< the argument as it was written, for messages

  /// Whether the flag sets something in the block `block`, or the block as a whole.
  [[nodiscard]] bool is_of(std::string_view block) const {
    return name == block || (name.size() > block.size() && name.starts_with(block) && name[block.size()] == '.');
  }
};

struct Arguments {
  std::vector<Flag> flags;  ///< in the order given
  bool help = false;

  /// The last flag of that name, which is the one that counts; nullptr when there is none.
  [[nodiscard]] const Flag* last(std::string_view name) const;
};

/// Splits the words of a command line. Throws Error{kUsage} for a word that is no flag and for a flag without a value.
[[nodiscard]] Arguments split_arguments(std::span<const std::string> words);

/// Checks the names of all flags, and the values of those that select a kind, against the schema.
///
/// Throws: Error{kUsage} that lists unknown words, each with the nearest name, or the known kinds.
void check_form(const Arguments& arguments, const std::vector<Node>& schema);

/// Checks that all flags of a choice block are settings of `alternative`. Throws Error{kUsage}.
void check_flags_fit(const Arguments& arguments, const Node& node, const Alternative& alternative);

}  // namespace lerobot::config
