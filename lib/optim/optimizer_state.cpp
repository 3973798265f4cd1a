#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/core/strict_json.hpp"
#include "lerobot/optim/optimizer.hpp"

namespace lerobot::optim {

namespace {

constexpr std::array kStateEntries{
    std::pair{"step", &ParamState::step},
    std::pair{"exp_avg", &ParamState::exp_avg},
    std::pair{"exp_avg_sq", &ParamState::exp_avg_sq},
    std::pair{"max_exp_avg_sq", &ParamState::max_exp_avg_sq},
    std::pair{"momentum_buffer", &ParamState::momentum_buffer},
};

// How a kernel runs is no part of the state, but PyTorch stores it.
constexpr std::array kExecutionKeys{"foreach", "capturable", "differentiable", "fused"};

std::string state_name(StateNaming naming, std::size_t index, const std::string& fqn, std::string_view entry) {
  return naming == StateNaming::kIndex ? fmt::format("state/{}/{}", index, entry)
                                       : fmt::format("state.{}.{}", fqn, entry);
}

void set_options(OptimizerKind kind, const Json& saved, GroupOptions& options) {
  options.lr = saved.at("lr").get<double>();
  options.weight_decay = saved.at("weight_decay").get<double>();
  options.maximize = saved.at("maximize").get<bool>();
  if (saved.contains("initial_lr")) options.initial_lr = saved.at("initial_lr").get<double>();
  if (kind == OptimizerKind::kSgd) {
    options.momentum = saved.at("momentum").get<double>();
    options.dampening = saved.at("dampening").get<double>();
    options.nesterov = saved.at("nesterov").get<bool>();
    return;
  }
  options.beta1 = saved.at("betas").at(0).get<double>();
  options.beta2 = saved.at("betas").at(1).get<double>();
  options.eps = saved.at("eps").get<double>();
  options.amsgrad = saved.at("amsgrad").get<bool>();
}

}  // namespace

void Optimizer::append_state(const Parameter& param, std::size_t index, StateNaming naming,
                             mesh::StateDict& out) const {
  for (const auto& [entry, member] : kStateEntries) {
    const at::Tensor& tensor = param.state.*member;
    if (!tensor.defined()) continue;
    mesh::TensorSlice slice{tensor, {}, 0, false};
    if (member != &ParamState::step)
      slice = {tensor, param.value.global_shape, param.value.row_begin, param.value.is_sharded};
    out.emplace_back(state_name(naming, index, param.name, entry), std::move(slice));
  }
}

mesh::StateDict Optimizer::state_dict(StateNaming naming) const {
  mesh::StateDict out;
  std::size_t index = 0;
  for (const auto& group : groups_)
    for (const auto& param : group.params) append_state(param, index++, naming, out);
  return out;
}

mesh::StateDict Optimizer::allocate_state(StateNaming naming, const std::function<bool(const std::string&)>& is_saved) {
  mesh::StateDict out;
  std::size_t index = 0;
  const char* first_entry = kind_ == OptimizerKind::kSgd ? "momentum_buffer" : "step";
  for (auto& group : groups_)
    for (auto& param : group.params) {
      param.state = {};
      if (keeps_state(group) && is_saved(state_name(naming, index, param.name, first_entry)))
        create_state(group, param);
      append_state(param, index++, naming, out);
    }
  return out;
}

Json Optimizer::group_json(const ParamGroup& group, StateNaming naming, std::size_t first_index) const {
  const GroupOptions& o = group.options;
  Json json;
  json["lr"] = o.lr;
  if (kind_ == OptimizerKind::kSgd) {
    json.update(Json{{"momentum", o.momentum},
                     {"dampening", o.dampening},
                     {"weight_decay", o.weight_decay},
                     {"nesterov", o.nesterov},
                     {"maximize", o.maximize},
                     {"foreach", nullptr},
                     {"differentiable", false},
                     {"fused", nullptr}});
  } else {
    json.update(Json{{"betas", {o.beta1, o.beta2}},
                     {"eps", o.eps},
                     {"weight_decay", o.weight_decay},
                     {"amsgrad", o.amsgrad},
                     {"maximize", o.maximize},
                     {"foreach", nullptr},
                     {"capturable", false},
                     {"differentiable", false},
                     {"fused", nullptr},
                     {"decoupled_weight_decay", kind_ == OptimizerKind::kAdamW}});
  }
  if (o.initial_lr) json["initial_lr"] = *o.initial_lr;
  Json params = Json::array();
  for (std::size_t i = 0; i < group.params.size(); ++i) {
    if (naming == StateNaming::kIndex)
      params.push_back(static_cast<std::int64_t>(first_index + i));
    else
      params.push_back(group.params[i].name);
  }
  json["params"] = std::move(params);
  return json;
}

Json Optimizer::param_groups(StateNaming naming) const {
  Json out = Json::array();
  std::size_t first_index = 0;
  for (const auto& group : groups_) {
    out.push_back(group_json(group, naming, first_index));
    first_index += group.params.size();
  }
  return out;
}

ParamGroup& Optimizer::group_for(const Json& saved, std::string_view where) {
  const auto names = saved.at("params").get<std::vector<std::string>>();
  ParamGroup* found = nullptr;
  for (auto& group : groups_) {
    const bool matches = std::any_of(group.params.begin(), group.params.end(), [&](const Parameter& param) {
      return std::find(names.begin(), names.end(), param.name) != names.end();
    });
    if (!matches && !(names.empty() && group.params.empty())) continue;
    if (found != nullptr)
      fail(ErrorKind::kCheckpoint,
           "{}: a saved optimizer group with {} parameters matches more than one present group.", where, names.size());
    found = &group;
  }
  if (found == nullptr)
    fail(ErrorKind::kCheckpoint, "{}: no present optimizer group holds a parameter of the saved group [{}].", where,
         fmt::join(names, ", "));
  return *found;
}

void Optimizer::load_param_groups(const Json& saved, StateNaming naming, std::string_view where) {
  if (naming == StateNaming::kIndex) {
    const Json running = param_groups(naming);
    require_like(running, saved, where);
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (saved[i].at("params") != running[i].at("params"))
        fail(ErrorKind::kCheckpoint, "{}: params of group {} are {}, expected {}.", where, i,
             saved[i].at("params").dump(), running[i].at("params").dump());
  } else if (!saved.is_array() || saved.size() != groups_.size()) {
    fail(ErrorKind::kCheckpoint, "{}: {} optimizer groups saved, the running optimizer has {}.", where, saved.size(),
         groups_.size());
  }
  std::vector<std::pair<GroupOptions, ParamGroup*>> loaded;  // applied only once everything was checked
  for (std::size_t i = 0; i < saved.size(); ++i) {
    ParamGroup& group = naming == StateNaming::kIndex ? groups_[i] : group_for(saved[i], where);
    Json values = saved[i];
    if (naming == StateNaming::kFqn) {
      const Json running = group_json(group, naming, 0);
      values["params"] = running.at("params");
      for (const char* key : kExecutionKeys)
        if (values.contains(key) && running.contains(key)) values[key] = running.at(key);
      require_like(running, values, where, fmt::format("[{}]", i));
    }
    if (kind_ != OptimizerKind::kSgd &&
        values.at("decoupled_weight_decay").get<bool>() != (kind_ == OptimizerKind::kAdamW))
      fail(ErrorKind::kCheckpoint,
           "{}: decoupled_weight_decay is {} (true: adamw, false: adam), the running optimizer is {}.", where,
           values.at("decoupled_weight_decay").get<bool>(), kind_ == OptimizerKind::kAdamW ? "adamw" : "adam");
    GroupOptions options = group.options;
    set_options(kind_, values, options);
    loaded.emplace_back(options, &group);
  }
  for (auto& [options, group] : loaded) group->options = options;
}

}  // namespace lerobot::optim
