#include "lerobot/checkpoint/training_step.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/core/strict_json.hpp"

namespace lerobot::checkpoint {

namespace {

constexpr std::array kDegrees{
    std::pair{"dp_replicate", &Parallelism::dp_replicate},
    std::pair{"dp_shard", &Parallelism::dp_shard},
    std::pair{"ring_degree", &Parallelism::ring_degree},
    std::pair{"ulysses_degree", &Parallelism::ulysses_degree},
};

constexpr std::array kProgress{
    std::pair{"epoch", &Progress::epoch},
    std::pair{"samples_in_epoch", &Progress::samples_in_epoch},
    std::pair{"total_samples", &Progress::total_samples},
    std::pair{"window_start_step", &Progress::window_start_step},
    std::pair{"window_start_epoch", &Progress::window_start_epoch},
    std::pair{"window_start_samples_in_epoch", &Progress::window_start_samples_in_epoch},
};

const Json* find(const Json& json, std::string_view key) {
  const auto found = json.find(std::string(key));
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t count(const Json& value, std::string_view key, std::int64_t at_least, std::string_view where) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) ||
      value.get<std::int64_t>() < at_least)
    fail(ErrorKind::kCheckpoint, "{}: \"{}\" is {} ({}), expected an integer of {} or more.", where, key, value.dump(),
         json_kind(value), at_least);
  return value.get<std::int64_t>();
}

std::optional<std::int64_t> optional_count(const Json& json, std::string_view key, std::string_view where) {
  const Json* value = find(json, key);
  return value == nullptr ? std::nullopt : std::optional(count(*value, key, 1, where));
}

const Json& require_object(const Json& value, std::string_view key, std::string_view where) {
  if (!value.is_object())
    fail(ErrorKind::kCheckpoint, "{}: \"{}\" is {} ({}), expected an object.", where, key, value.dump(),
         json_kind(value));
  return value;
}

template <typename T>
void compare(std::vector<std::string>& out, std::string_view key, const std::optional<T>& saved,
             const std::optional<T>& now) {
  if (saved && now && *saved != *now) out.push_back(fmt::format("{}: {} -> {}", key, *saved, *now));
}

}  // namespace

Json to_json(const TrainingStep& value) {
  Json json{{"step", value.step}};
  if (value.dp_world_size) json["dp_world_size"] = *value.dp_world_size;
  if (value.batch_size) json["batch_size"] = *value.batch_size;
  if (value.grad_accum_steps) json["grad_accum_steps"] = *value.grad_accum_steps;
  if (value.mixed_precision) json["mixed_precision"] = *value.mixed_precision;
  if (value.parallelism)
    for (const auto& [key, member] : kDegrees) json["parallelism"][key] = (*value.parallelism).*member;
  if (value.progress)
    for (const auto& [key, member] : kProgress) json["progress"][key] = (*value.progress).*member;
  return json;
}

TrainingStep training_step_from_json(const Json& json, std::string_view where) {
  TrainingStep out;
  if (!json.is_object() || !json.contains("step"))
    fail(ErrorKind::kCheckpoint, "{}: there is no \"step\"; expected the number of loop steps done.", where);
  out.step = count(json.at("step"), "step", 0, where);
  out.dp_world_size = optional_count(json, "dp_world_size", where);
  if (!out.dp_world_size) out.dp_world_size = optional_count(json, "num_processes", where);
  out.batch_size = optional_count(json, "batch_size", where);
  out.grad_accum_steps = optional_count(json, "grad_accum_steps", where);
  for (const char* key : {"mixed_precision", "precision"}) {
    const Json* value = find(json, key);
    if (value == nullptr || out.mixed_precision) continue;
    if (*value != "no" && *value != "bf16" && *value != "fp16")
      fail(ErrorKind::kCheckpoint, "{}: \"{}\" is {}, expected \"no\", \"bf16\" or \"fp16\".", where, key,
           value->dump());
    out.mixed_precision = value->get<std::string>();
  }
  if (const Json* degrees = find(json, "parallelism")) {
    require_object(*degrees, "parallelism", where);
    out.parallelism.emplace();
    for (const auto& [key, member] : kDegrees)
      (*out.parallelism).*member = optional_count(*degrees, key, where).value_or(1);
  }
  if (const Json* progress = find(json, "progress")) {
    require_object(*progress, "progress", where);
    out.progress.emplace();
    for (const auto& [key, member] : kProgress) {
      const Json* value = find(*progress, key);
      if (value == nullptr) fail(ErrorKind::kCheckpoint, "{}: \"progress\" lacks \"{}\".", where, key);
      (*out.progress).*member = count(*value, key, 0, where);
    }
  }
  return out;
}

std::vector<std::string> differing_settings(const TrainingStep& saved, const TrainingStep& now) {
  std::vector<std::string> out;
  compare(out, "grad_accum_steps", saved.grad_accum_steps, now.grad_accum_steps);
  if (saved.parallelism && now.parallelism)
    for (const auto& [key, member] : kDegrees)
      compare<std::int64_t>(out, key, (*saved.parallelism).*member, (*now.parallelism).*member);
  compare(out, "mixed_precision", saved.mixed_precision, now.mixed_precision);
  return out;
}

}  // namespace lerobot::checkpoint
