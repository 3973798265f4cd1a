#include "lerobot/fsdp/fully_shard.hpp"

#include <algorithm>

#include "fsdp/engine.hpp"
#include "fsdp/module_tree.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::fsdp {
namespace {

std::size_t entry_index(torch::nn::Module& module, const std::string& name) {
  const auto& entries = parameter_entries(module);
  std::size_t index = 0;
  while (entries[index].key() != name) ++index;
  return index;
}

std::vector<ShardedParam> locate(const DescribedModule& described, const std::vector<UnitParam>& params) {
  std::vector<ShardedParam> located;
  for (const UnitParam& param : params) {
    ShardedParam& result = located.emplace_back();
    result.fqn = param.fqn;
    for (const UnitParam::Place& place : param.places) {
      const auto& module = described.modules[place.module];
      const std::string& name = described.tree[place.module].params[place.param].name;
      result.places.push_back({module, entry_index(*module, name)});
    }
    const ShardedParam::Place& first = result.places.front();
    result.whole = parameter_entries(*first.module)[first.index].value();
  }
  return located;
}

/// Ranks other than the shard group's own can't tell that a numeric reshard has the wrong neighbours.
void check_reshard_group(const ShardGroups& groups, const ReshardAfterForward& reshard) {
  const int num_shards = size_of(groups.shard);
  const int kept = reshard.num_shards();
  if (kept == 0) return;
  if (kept < 0 || num_shards % kept != 0)
    fail(ErrorKind::kConfig, "fully_shard: reshard_after_forward={} does not divide the shard group of {} ranks.", kept,
         num_shards);
  if (size_of(groups.reshard) != kept || rank_of(groups.reshard) != rank_of(groups.shard) % kept)
    fail(ErrorKind::kConfig,
         "fully_shard: reshard_after_forward={} needs ShardGroups::reshard to hold this rank's {} neighbours in the shard "
         "group, with this rank as number {}; it has {} ranks and this is number {}.",
         kept, kept, rank_of(groups.shard) % kept, size_of(groups.reshard), rank_of(groups.reshard));
}

Unit make_unit(const DescribedModule& described, const WrapUnit& wrap, const ShardGroups& groups,
               const FsdpOptions& options) {
  const ModuleInfo& module = described.tree[wrap.module];
  Unit unit;
  unit.is_root = wrap.module == 0;
  unit.hook_point = dynamic_cast<nn::HookPoint*>(described.modules[wrap.module].get());
  if (unit.hook_point->hook(nn::HookLayer::kUnit))
    fail(ErrorKind::kConfig, "fully_shard: {} \"{}\" is a wrap unit of another ShardedModule. Release that first.",
         module.class_name, module.path);
  unit.info.path = module.path;
  unit.info.class_name = module.class_name;
  std::vector<ShardedParam> params = locate(described, wrap.params);
  for (const ShardedParam& param : params) {
    unit.info.num_params += param.whole.numel();
    unit.info.num_trainable += param.whole.requires_grad() ? param.whole.numel() : 0;
  }
  unit.group = std::make_unique<ParamGroup>(unit.is_root ? module.class_name : module.path, std::move(params), groups,
                                            options);
  unit.info.shard_nbytes = unit.group->shard_nbytes();
  unit.info.gathered_nbytes = unit.group->gathered_nbytes();
  return unit;
}

}  // namespace

ShardedModule fully_shard(std::shared_ptr<torch::nn::Module> module, const ShardGroups& groups, FsdpOptions options) {
  const DescribedModule described = describe(module);
  const WrapUnits wraps = resolve_wrap_units(described.tree, options.wrap, options.ignored_modules);
  check_reshard_group(groups, options.reshard_after_forward);
  if (!wraps.ignored_modules_matched && options.logger)
    options.logger->warning("accelerator.fsdp.ignored_modules: \"{}\" matches no module path as a whole; nothing is ignored.",
                            *options.ignored_modules);
  std::vector<Unit> units;
  for (const WrapUnit& wrap : wraps.units) units.push_back(make_unit(described, wrap, groups, options));
  std::vector<ShardedParam> ignored = locate(described, wraps.ignored);
  for (ShardedParam& param : ignored) param.shard = param.whole;
  const auto engine = std::make_shared<Engine>(std::move(module), std::move(units), std::move(ignored), groups, options);
  engine->attach();
  return ShardedModule(engine);
}

}  // namespace lerobot::fsdp
