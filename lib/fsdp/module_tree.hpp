#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lerobot/fsdp/wrap_units.hpp"

namespace lerobot::fsdp {

/// A module tree as the wrap rules see it, with the modules themselves; a module registered twice stands there once.
struct DescribedModule {
  ModuleTree tree;
  std::vector<std::shared_ptr<torch::nn::Module>> modules;  ///< parallel to `tree`
};
[[nodiscard]] DescribedModule describe(const std::shared_ptr<torch::nn::Module>& root);

/// The entries that `named_parameters()` reads. A wrapper has to exchange them, and LibTorch has no call for that.
[[nodiscard]] torch::OrderedDict<std::string, at::Tensor>& parameter_entries(torch::nn::Module& module);

/// A parameter or buffer as its module holds it now.
struct NamedEntry {
  std::string fqn;
  at::Tensor tensor;
  bool is_buffer;
};
/// Parameters, then buffers, then children, of each module: the order of a state dict in Python. Every name is there,
/// also those of modules that are registered twice.
[[nodiscard]] std::vector<NamedEntry> state_entries(const torch::nn::Module& root);

}  // namespace lerobot::fsdp
