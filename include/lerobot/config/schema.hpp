#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/field.hpp"
#include "lerobot/core/json.hpp"
#include "lerobot/policies/registry.hpp"

namespace lerobot::config {

/// One kind of a choice block and the settings that it has.
struct Alternative {
  std::string name;
  std::vector<Field> fields;
};

/// One key of `train_config.json`, with all that is known of it. Flags, files, `--help` and suggestions come from here.
struct Node {
  enum class Kind {
    kSetting,      ///< a value; `field` declares it
    kBlock,        ///< a map with the keys of `children`
    kChoice,       ///< a map whose `type` selects one of `alternatives`; null when absent
    kUnsupported,  ///< a block that this product has no use for: only null is legal
  };
  Kind kind = Kind::kSetting;
  Field field;  ///< of other kinds than kSetting only `name` and `help` count
  std::vector<Node> children = {};
  std::vector<Alternative> alternatives = {};
  bool nullable = false;  ///< kBlock: null when absent
  bool hidden = false;    ///< legal in files, not a flag

  /// The alternative called `type`; nullptr when there is none.
  [[nodiscard]] const Alternative* alternative(std::string_view type) const;
};

/// The settings of a training run in the order of `train_config.json`, those that are ours alone at the end.
[[nodiscard]] std::vector<Node> train_schema(const policies::Registry& registry);

/// The value of a block with every key present, in the order of the declaration. Choice blocks are not decoded here:
/// theirs is left as null.
///
/// Throws: Error{kConfig} for a value that does not decode, a required key that is missing, a key that is not declared.
[[nodiscard]] Json decode_block(const std::vector<Node>& nodes, const Json& tokens, const std::string& prefix = "");

/// The value of a choice block of the kind `alternative`: `type` first. Throws as decode_block.
[[nodiscard]] Json decode_choice(const Alternative& alternative, const Json& tokens, const std::string& prefix);

/// The dotted names of all flags, in order.
[[nodiscard]] std::vector<std::string> flag_names(const std::vector<Node>& nodes);

/// The name in `names` that is nearest to `name` by edit distance; empty when none is near.
[[nodiscard]] std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace lerobot::config
