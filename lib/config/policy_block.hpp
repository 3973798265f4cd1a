#pragma once

#include <filesystem>

#include "arguments.hpp"

namespace lerobot::config {

/// The policy's block before it is decoded.
struct PolicyTokens {
  Json block;                  ///< null, or an empty map, when no policy is configured
  std::filesystem::path file;  ///< the file that it began with, for messages
};

/// Lays the sources of the policy's block over one another: the `config.json` of `--policy.path` (or of the `path` that
/// the configuration file gives), over it what that file says beside, over it the flags.
///
/// `stored`: the file's block; `source`: that file. A resumed run takes no path: its block is the checkpoint's.
/// Throws: Error{kConfig} for a path without `config.json`, and for one whose type is missing or unknown.
[[nodiscard]] PolicyTokens policy_tokens(const Node& node, const Json& stored, const std::filesystem::path& source,
                                         const Arguments& arguments, bool resumed);

}  // namespace lerobot::config
