#pragma once

#include <map>
#include <string>
#include <vector>

#include "lerobot/config/parse_train.hpp"

namespace lerobot::config {

/// The device that a run uses: the requested one where it is present, else the best one, with a warning.
/// Throws Error{kConfig} for a name that is no device.
[[nodiscard]] std::string choose_device(const Json& requested, const Devices& devices,
                                        std::vector<std::string>& warnings);

/// Refuses variables that configure Accelerate, which a user may believe to have an effect. Throws Error{kConfig} with
/// every name that is set.
void check_variables(const std::map<std::string, std::string, std::less<>>& variables);

}  // namespace lerobot::config
