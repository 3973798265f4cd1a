#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
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

/// Fills `config.optimizer` and `config.scheduler`: the policy's training preset under what `merged` says about single
/// settings, or on a resume, or with the preset off, `merged` alone.
///
/// A type that differs from the preset's replaces its block. An optimizer that is given as null leaves the preset as it
/// is (there must be one); a scheduler that a flag gives as null is switched off. Throws: Error{kConfig} when a block
/// is missing or wrong; Error{kUsage} for a flag that the kind in force does not have.
void settle_optimizer(TrainConfig& config, const policies::Registry& registry, const std::vector<Node>& schema,
                      const Json& merged, const Arguments& arguments);

/// A config from the tokens of one file, its policy included.
[[nodiscard]] TrainConfig config_from_tokens(const Json& tokens, const std::vector<Node>& schema);
/// A config from fully decoded JSON.
[[nodiscard]] TrainConfig config_from_decoded(const Json& decoded);
/// Only the optimizer or scheduler of one; null gives nothing.
[[nodiscard]] std::optional<OptimizerConfig> optimizer_from_decoded(const Json& block);
[[nodiscard]] std::optional<SchedulerConfig> scheduler_from_decoded(const Json& block);

/// What `--help` prints: all flags of the blocks in force, in groups, with type, default and a line of help.
[[nodiscard]] std::string help_text(const std::vector<Node>& schema,
                                    const std::map<std::string, std::string, std::less<>>& kinds);

}  // namespace lerobot::config
