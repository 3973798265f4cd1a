#include "fsdp/module_tree.hpp"

#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>

#include <string_view>
#include <unordered_map>

#include "lerobot/nn/hook.hpp"

namespace lerobot::fsdp {
namespace {

using Entries = torch::OrderedDict<std::string, at::Tensor>;

/// Reaches a protected member of any module: a pointer to member taken through a derived class is a legal way in.
struct Opened : torch::nn::Module {
  static Entries& parameters_of(torch::nn::Module& module) { return module.*(&Opened::parameters_); }
};

/// "torch::nn::LinearImpl" -> "Linear".
std::string class_name_of(const torch::nn::Module& module) {
  if (const auto* point = dynamic_cast<const nn::HookPoint*>(&module)) return std::string(point->class_name());
  std::string_view name = module.name();
  if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  if (name.ends_with("Impl")) name.remove_suffix(4);
  return std::string(name);
}

bool has_forward(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::ModuleListImpl*>(&module) == nullptr &&
         dynamic_cast<const torch::nn::ModuleDictImpl*>(&module) == nullptr &&
         dynamic_cast<const torch::nn::ParameterListImpl*>(&module) == nullptr &&
         dynamic_cast<const torch::nn::ParameterDictImpl*>(&module) == nullptr;
}

std::string join(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

class Describer {
 public:
  explicit Describer(DescribedModule& result) : result_(result) {}

  void visit(const std::shared_ptr<torch::nn::Module>& module, const std::string& path, std::optional<std::size_t> parent) {
    if (!seen_.try_emplace(module.get(), seen_.size()).second) return;
    const std::size_t self = result_.tree.size();
    ModuleInfo info{.path = path,
                    .class_name = class_name_of(*module),
                    .parent = parent,
                    .has_hook_point = dynamic_cast<const nn::HookPoint*>(module.get()) != nullptr,
                    .has_forward = has_forward(*module),
                    .params = {}};
    for (const auto& entry : Opened::parameters_of(*module)) {
      const at::Tensor& tensor = entry.value();
      if (!tensor.defined()) continue;  // a bias that was switched off
      const auto [at, is_new] = identities_.try_emplace(tensor.unsafeGetTensorImpl(), identities_.size());
      info.params.push_back({entry.key(), at->second, tensor.numel(), tensor.dim()});
    }
    result_.tree.push_back(std::move(info));
    result_.modules.push_back(module);
    for (const auto& child : module->named_children()) visit(child.value(), join(path, child.key()), self);
  }

 private:
  DescribedModule& result_;
  std::unordered_map<const torch::nn::Module*, std::size_t> seen_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> identities_;
};

void append_entries(const torch::nn::Module& module, const std::string& path, std::vector<NamedEntry>& entries) {
  for (const auto& entry : module.named_parameters(/*recurse=*/false))
    if (entry.value().defined()) entries.push_back({join(path, entry.key()), entry.value(), false});
  for (const auto& entry : module.named_buffers(/*recurse=*/false))
    if (entry.value().defined()) entries.push_back({join(path, entry.key()), entry.value(), true});
  for (const auto& child : module.named_children()) append_entries(*child.value(), join(path, child.key()), entries);
}

}  // namespace

DescribedModule describe(const std::shared_ptr<torch::nn::Module>& root) {
  DescribedModule result;
  Describer(result).visit(root, "", std::nullopt);
  return result;
}

torch::OrderedDict<std::string, at::Tensor>& parameter_entries(torch::nn::Module& module) {
  return Opened::parameters_of(module);
}

std::vector<NamedEntry> state_entries(const torch::nn::Module& root) {
  std::vector<NamedEntry> entries;
  append_entries(root, "", entries);
  return entries;
}

}  // namespace lerobot::fsdp
