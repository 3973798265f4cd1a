#include "lerobot/fsdp/wrap_units.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "lerobot/core/error.hpp"

namespace lerobot::fsdp {
namespace {

std::string fqn_of(const ModuleTree& tree, UnitParam::Place place) {
  const ModuleInfo& module = tree[place.module];
  const std::string& name = module.params[place.param].name;
  return module.path.empty() ? name : module.path + "." + name;
}

std::string path_or_root(const ModuleInfo& module) {
  return module.path.empty() ? std::string("the root module") : fmt::format("module \"{}\"", module.path);
}

/// The classes to choose from: those that can be units if there are any, else all.
std::set<std::string> class_names_of(const ModuleTree& tree) {
  std::set<std::string> hooked, all;
  for (std::size_t m = 1; m < tree.size(); ++m) {
    all.insert(tree[m].class_name);
    if (tree[m].has_hook_point) hooked.insert(tree[m].class_name);
  }
  return hooked.empty() ? all : hooked;
}

std::vector<bool> ignored_of(const ModuleTree& tree, const std::optional<std::string>& expression, bool& matched) {
  std::vector<bool> ignored(tree.size(), false);
  if (!expression) return ignored;
  std::regex regex;
  try {
    regex = std::regex(*expression, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    fail(ErrorKind::kConfig,
         "accelerator.fsdp.ignored_modules: \"{}\" is not a regular expression ({}). Write one that matches whole "
         "module paths, like model\\.action_head.",
         *expression, e.what());
  }
  matched = false;
  for (std::size_t m = 0; m < tree.size(); ++m) {
    const bool hit = std::regex_match(tree[m].path, regex);
    matched = matched || hit;
    ignored[m] = hit || (tree[m].parent && ignored[*tree[m].parent]);
  }
  return ignored;
}

/// Parameters below each module, a tied one counted once.
std::vector<std::int64_t> subtree_num_params(const ModuleTree& tree) {
  std::vector<std::map<std::size_t, std::int64_t>> numel_by_identity(tree.size());
  for (std::size_t m = 0; m < tree.size(); ++m)
    for (const ParamInfo& param : tree[m].params)
      for (std::optional<std::size_t> up = m; up; up = tree[*up].parent)
        numel_by_identity[*up][param.identity] = param.numel;
  std::vector<std::int64_t> sums;
  for (const auto& below : numel_by_identity) {
    std::int64_t sum = 0;
    for (const auto& [identity, numel] : below) sum += numel;
    sums.push_back(sum);
  }
  return sums;
}

std::vector<bool> units_by_size(const ModuleTree& tree, std::int64_t min_num_params) {
  if (min_num_params < 1)
    fail(ErrorKind::kConfig, "accelerator.fsdp.min_num_params: got {}; expected at least 1.", min_num_params);
  const std::vector<std::int64_t> sizes = subtree_num_params(tree);
  std::vector<bool> is_unit(tree.size(), false);
  std::size_t largest = 0;
  for (std::size_t m = 1; m < tree.size(); ++m) {
    if (!tree[m].has_forward) continue;
    is_unit[m] = sizes[m] > min_num_params;
    if (largest == 0 || sizes[m] > sizes[largest]) largest = m;
  }
  if (std::find(is_unit.begin(), is_unit.end(), true) == is_unit.end())
    fail(ErrorKind::kConfig,
         "accelerator.fsdp.min_num_params: no module below {} has more than {} parameters{}. Lower it, or name classes "
         "in accelerator.fsdp.wrap_modules: {}.",
         tree[0].class_name, min_num_params,
         largest == 0 ? "" : fmt::format("; the largest, \"{}\", has {}", tree[largest].path, sizes[largest]),
         fmt::join(class_names_of(tree), ", "));
  return is_unit;
}

std::vector<bool> units_by_class(const ModuleTree& tree, const std::vector<std::string>& names) {
  std::vector<bool> is_unit(tree.size(), false);
  for (const std::string& name : names) {
    bool found = false;
    for (std::size_t m = 0; m < tree.size(); ++m) {
      if (tree[m].class_name != name) continue;
      found = true;
      is_unit[m] = m != 0;  // the root is a unit in any case
    }
    if (!found)
      fail(ErrorKind::kConfig, "accelerator.fsdp.wrap_modules: Could not find the class \"{}\" in {}. Its classes: {}.",
           name, tree[0].class_name, fmt::join(class_names_of(tree), ", "));
  }
  return is_unit;
}

std::vector<bool> units_of(const ModuleTree& tree, const WrapPolicy& policy) {
  if (policy.min_num_params && !policy.class_names.empty())
    fail(ErrorKind::kConfig,
         "accelerator.fsdp.wrap_modules=[{}] and accelerator.fsdp.min_num_params={} are mutually exclusive. Give one.",
         fmt::join(policy.class_names, ", "), *policy.min_num_params);
  if (policy.min_num_params) return units_by_size(tree, *policy.min_num_params);
  const std::vector<std::string>& names = policy.class_names.empty() ? policy.declared : policy.class_names;
  if (names.empty())
    fail(ErrorKind::kConfig,
         "sharding: {} declares no wrap units. Name classes in accelerator.fsdp.wrap_modules (it has {}), give "
         "accelerator.fsdp.min_num_params, or declare them in the policy.",
         tree[0].class_name, fmt::join(class_names_of(tree), ", "));
  return units_by_class(tree, names);
}

/// Children before parents, so that an inner unit comes before the one around it; the root last.
void append_post_order(const std::vector<std::vector<std::size_t>>& children, std::size_t module,
                       std::vector<std::size_t>& order) {
  for (const std::size_t child : children[module]) append_post_order(children, child, order);
  order.push_back(module);
}

std::vector<std::size_t> post_order(const ModuleTree& tree) {
  std::vector<std::vector<std::size_t>> children(tree.size());
  for (std::size_t m = 1; m < tree.size(); ++m) children[*tree[m].parent].push_back(m);
  std::vector<std::size_t> order;
  append_post_order(children, 0, order);
  return order;
}

}  // namespace

WrapUnits resolve_wrap_units(const ModuleTree& tree, const WrapPolicy& policy,
                             const std::optional<std::string>& ignored_modules) {
  constexpr std::size_t kIgnored = static_cast<std::size_t>(-1);
  WrapUnits result;
  const std::vector<bool> ignored = ignored_of(tree, ignored_modules, result.ignored_modules_matched);
  if (ignored[0])
    fail(ErrorKind::kConfig, "accelerator.fsdp.ignored_modules: \"{}\" matches the root, so nothing is left to shard.",
         *ignored_modules);
  std::vector<bool> is_unit = units_of(tree, policy);
  is_unit[0] = true;

  // The innermost unit above each module; a module comes after its parent.
  std::vector<std::size_t> owner(tree.size());
  for (std::size_t m = 0; m < tree.size(); ++m)
    owner[m] = ignored[m] ? kIgnored : is_unit[m] ? m : owner[*tree[m].parent];

  std::map<std::size_t, std::vector<UnitParam>> params_by_owner;
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> home;  // identity -> owner, index among its parameters
  for (std::size_t m = 0; m < tree.size(); ++m) {
    for (std::size_t p = 0; p < tree[m].params.size(); ++p) {
      const UnitParam::Place place{m, p};
      const std::string fqn = fqn_of(tree, place);
      std::vector<UnitParam>& params = params_by_owner[owner[m]];
      const auto [at, is_new] = home.try_emplace(tree[m].params[p].identity, owner[m], params.size());
      if (is_new) {
        if (owner[m] != kIgnored && tree[m].params[p].dim == 0)
          fail(ErrorKind::kConfig,
               "sharding: parameter \"{}\" is a scalar and has no rows to divide. Give it the shape [1], or list its "
               "module in accelerator.fsdp.ignored_modules.",
               fqn);
        params.push_back({fqn, {place}});
        continue;
      }
      const auto [first_owner, index] = at->second;
      UnitParam& first = params_by_owner[first_owner][index];
      if (first_owner != owner[m]) {
        const auto name = [&](std::size_t unit) {
          return unit == kIgnored ? std::string("the ignored modules") : "the unit of " + path_or_root(tree[unit]);
        };
        fail(ErrorKind::kConfig,
             "sharding: parameter \"{}\" is shared with \"{}\", but they lie in different units ({} and {}). Choose wrap "
             "units that keep both names together.",
             first.fqn, fqn, name(first_owner), name(owner[m]));
      }
      first.places.push_back(place);
    }
  }

  for (const std::size_t m : post_order(tree)) {
    const bool has_params = params_by_owner.count(m) != 0;
    if (!is_unit[m] || ignored[m] || (m != 0 && !has_params)) continue;
    if (!tree[m].has_hook_point)
      fail(ErrorKind::kConfig,
           "sharding: {} of class {} can't be a wrap unit: its holder has no hook point. Declare it with LEROBOT_MODULE "
           "where it has TORCH_MODULE.",
           path_or_root(tree[m]), tree[m].class_name);
    result.units.push_back({m, has_params ? std::move(params_by_owner[m]) : std::vector<UnitParam>{}});
  }
  if (const auto at = params_by_owner.find(kIgnored); at != params_by_owner.end()) result.ignored = std::move(at->second);
  return result;
}

}  // namespace lerobot::fsdp
