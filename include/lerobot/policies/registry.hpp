#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lerobot/core/field.hpp"
#include "lerobot/core/json.hpp"

namespace lerobot::policies {

class Policy;

/// One kind of policy, as `--policy.type` names it. A downstream project adds its own to the registry that it hands to
/// `train::run_app`; nothing in this library changes for it.
struct PolicyType {
  std::string name;  ///< "act"
  std::string class_name;  ///< "ACTPolicy", for messages
  /// The policy's own settings in declaration order, after the base settings that every policy has.
  std::vector<Field> fields;
  /// Checks one decoded policy block (base and own fields). Throws Error{kConfig}.
  std::function<void(const Json& config)> validate;
  /// Builds the policy on CPU from a checked block with filled `input_features` and `output_features`, in train mode,
  /// with freshly drawn weights from the default generator.
  std::function<std::shared_ptr<Policy>(const Json& config)> make;
  /// Classes whose modules become wrap units; empty: none declared.
  std::vector<std::string> wrap_modules;
  /// The `optimizer` and `scheduler` blocks of the training preset, filled from the policy's block. `scheduler` may be null.
  std::function<Json(const Json& config)> optimizer_preset;
  std::function<Json(const Json& config)> scheduler_preset;
  /// Steps relative to the current frame that a sample of `action` (or an observation) holds; empty: the frame alone.
  std::function<std::vector<std::int64_t>(const Json& config)> action_delta_indices;
  std::function<std::vector<std::int64_t>(const Json& config)> observation_delta_indices;
  std::int64_t drop_n_last_frames = 0;
};

/// The policies that a program knows. Not global: made in `main`, passed down.
class Registry {
 public:
  void add(PolicyType type);
  /// Throws Error{kUsage} that lists the known names.
  [[nodiscard]] const PolicyType& at(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<PolicyType> types_;
};

/// The settings every policy has, `n_obs_steps` to `pretrained_revision`, in the order of LeRobot's config.json.
[[nodiscard]] const std::vector<Field>& base_policy_fields();

/// A registry with the policies of this library: act.
[[nodiscard]] Registry built_in_policies();

}  // namespace lerobot::policies
