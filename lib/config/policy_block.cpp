#include "policy_block.hpp"

#include <optional>

#include "assemble.hpp"
#include "lerobot/config/value.hpp"
#include "lerobot/core/error.hpp"
#include "sources.hpp"

namespace lerobot::config {
namespace fs = std::filesystem;
namespace {

/// The folder that the policy comes from, if any.
std::optional<std::string> policy_path(const Json& stored, const Arguments& arguments) {
  const Flag* flag = arguments.last("policy.path");
  if (!flag) return text_in(stored, "path");
  Json given = Json::object();
  given["policy.path"] = flag->text;
  return text_in(given, "policy.path");
}

/// The `config.json` in `folder`, which must name a known type.
Json tokens_of_folder(const Node& node, const fs::path& folder) {
  Json tokens = read_policy_tokens(folder);
  naming_file(folder / "config.json", {}, [&] {
    if (kind_in(node, tokens).empty())
      fail(ErrorKind::kConfig, "`policy.type`: the file has no type; expected the name of a policy.");
  });
  return tokens;
}

}  // namespace

PolicyTokens policy_tokens(const Node& node, const Json& stored, const fs::path& source, const Arguments& arguments,
                           bool resumed) {
  PolicyTokens result{stored.is_null() ? Json::object() : stored, source};
  const std::optional<std::string> path = resumed ? std::nullopt : policy_path(stored, arguments);
  if (path) {
    result.block = tokens_of_folder(node, *path);
    result.file = fs::path(*path) / "config.json";
    if (stored.is_object() && stored.contains("path"))
      for (const auto& [key, value] : stored.items())
        if (key != "type" && !no_block(value)) result.block[key] = value;
  }
  if (result.block.is_object()) result.block.erase("path");
  Json all = Json::object();
  all["policy"] = std::move(result.block);
  const std::vector<Node> schema{node};
  for (const Flag& flag : arguments.flags)
    if (flag.is_of("policy") && flag.name != "policy.path") apply_flag(all, flag, schema);
  result.block = std::move(all["policy"]);
  if (path && result.block.is_object()) result.block["pretrained_path"] = tokens_from_json(*path);
  return result;
}

}  // namespace lerobot::config
