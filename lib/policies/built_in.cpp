#include "lerobot/policies/act_policy.hpp"
#include "lerobot/policies/act_type.hpp"
#include "lerobot/policies/backbone_weights.hpp"
#include "lerobot/policies/registry.hpp"

namespace lerobot::policies {
namespace {

std::shared_ptr<Policy> make_act(const Json& settings) {
  const ACTConfig config = ACTConfig::from_json(settings);
  ACTPolicy policy(config);
  // A policy that is read from a folder brings its backbone along.
  const bool is_read = settings.contains("pretrained_path") && !settings["pretrained_path"].is_null();
  if (config.pretrained_backbone_weights && !config.image_features().empty() && !is_read)
    load_backbone_weights(policy->model()->backbone(), *config.pretrained_backbone_weights);
  return policy.ptr();
}

}  // namespace

Registry built_in_policies() {
  PolicyType act = act_type();
  act.make = make_act;
  Registry registry;
  registry.add(std::move(act));
  return registry;
}

}  // namespace lerobot::policies
