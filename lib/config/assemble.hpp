#pragma once

#include <string>
#include <vector>

#include "lerobot/config/parse_train.hpp"
#include "lerobot/config/schema.hpp"
#include "lerobot/config/train_config.hpp"

namespace lerobot::config {

/// The node of that name at the top of the schema.
[[nodiscard]] const Node& node_named(const std::vector<Node>& schema, std::string_view name);

/// The `type` that the tokens of a choice block name; empty when they name none. Throws Error{kConfig} for an unknown
/// one.
[[nodiscard]] std::string kind_in(const Node& node, const Json& block);

/// Whether tokens hold no block: nothing, null, or an empty text for it.
[[nodiscard]] bool no_block(const Json& tokens);

/// The choice block of `node` inside `tokens` as a file means it: null when absent, else by its `type`.
/// Throws Error{kConfig}; also when the type is missing and there is no default type.
[[nodiscard]] Json decode_choice_by_type(const Node& node, const Json& tokens);

/// The optimizer block in force: `preset` under what `given` says about single settings.
[[nodiscard]] Json optimizer_in_force(const Node& node, const Json& given, const Json& preset);
/// The same for the scheduler. A block that is given as null switches the preset's off.
[[nodiscard]] Json scheduler_in_force(const Node& node, const Json& given, const Json& preset, bool cleared);

/// A config from fully decoded JSON.
[[nodiscard]] TrainConfig config_from_decoded(const Json& decoded);
/// Only the optimizer or scheduler of one; null gives nothing.
[[nodiscard]] std::optional<OptimizerConfig> optimizer_from_decoded(const Json& block);
[[nodiscard]] std::optional<SchedulerConfig> scheduler_from_decoded(const Json& block);

/// The device that a run uses: the requested one where it is present, else the best one, with a warning.
/// Throws Error{kConfig} for a name that is no device.
[[nodiscard]] std::string choose_device(const Json& requested, const Devices& devices,
                                        std::vector<std::string>& warnings);

/// What `--help` prints: all flags of the blocks in force, in groups, with type, default and a line of help.
[[nodiscard]] std::string help_text(const std::vector<Node>& schema,
                                    const std::map<std::string, std::string, std::less<>>& kinds);

}  // namespace lerobot::config
