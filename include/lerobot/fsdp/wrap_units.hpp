#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lerobot::fsdp {

/// Which modules become wrap units. At most one of the first two is given; `declared` is the fallback.
struct WrapPolicy {
  std::vector<std::string> class_names;        ///< --accelerator.fsdp.wrap_modules; empty: not given
  std::optional<std::int64_t> min_num_params;  ///< --accelerator.fsdp.min_num_params
  std::vector<std::string> declared;           ///< what the policy's author declared
};

/// A parameter as the rules see it.
struct ParamInfo {
  std::string name;            ///< within its module
  std::size_t identity = 0;    ///< equal for two names of one tensor
  std::int64_t numel = 0;
  std::int64_t dim = 0;
};

/// A module as the rules see it.
struct ModuleInfo {
  std::string path;                   ///< FQN; empty for the root
  std::string class_name;             ///< as users write it: "ACTEncoderLayer"
  std::optional<std::size_t> parent;  ///< index in the tree; none for the root
  bool has_hook_point = false;        ///< its holder was declared with LEROBOT_MODULE
  bool has_forward = true;            ///< false for containers: ModuleList, ModuleDict, ParameterList, …
  std::vector<ParamInfo> params;      ///< its own, without those of its children
};

/// All modules below a root, each before its children, children in registration order. Index 0 is the root.
using ModuleTree = std::vector<ModuleInfo>;

/// One parameter of a unit. A tied parameter is listed once, with every place that holds it.
struct UnitParam {
  struct Place {
    std::size_t module;  ///< index in the tree
    std::size_t param;   ///< index among that module's own
  };
  std::string fqn;  ///< of the first place
  std::vector<Place> places;
};

/// Modules whose parameters move together: the tree below `module` without nested units.
struct WrapUnit {
  std::size_t module;
  std::vector<UnitParam> params;
};

struct WrapUnits {
  std::vector<WrapUnit> units;     ///< bottom-up; the root is the last one, even if nothing is left for it
  std::vector<UnitParam> ignored;  ///< parameters that stay whole on every rank
  bool ignored_modules_matched = true;  ///< false: an expression was given and no module's path matches it
};

/// Divides the parameters of a module tree into wrap units. A pure function: every rank gets the same answer.
///
/// By class: every module of one of the classes. By size: every module with strictly more parameters than
/// `min_num_params` in its whole subtree, where containers without a forward are passed over. A parameter belongs to
/// the innermost unit above it. Modules whose path matches `ignored_modules` as a whole, and all below them, are left
/// out. Units without parameters of their own are dropped, but for the root.
/// Throws: Error{kConfig} when no unit is asked for or found, a class does not exist, both rules are given,
///   `min_num_params` < 1, a unit has no hook point, a parameter is a scalar, or a tied one lies in two units.
/// Source: Accelerate's FSDP2 auto wrap policies. Differs: containers are passed over, not refused.
[[nodiscard]] WrapUnits resolve_wrap_units(const ModuleTree& tree, const WrapPolicy& policy,
                                           const std::optional<std::string>& ignored_modules = std::nullopt);

}  // namespace lerobot::fsdp
