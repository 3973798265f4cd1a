#include "lerobot/policies/weights.hpp"

#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/core/torch_dtype.hpp"

namespace lerobot::policies {
namespace {

using processors::TensorMap;

TensorMap state_of(const torch::nn::Module& module) {
  TensorMap state;
  for (const auto& item : module.named_parameters()) state.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace(item.key(), item.value());
  return state;
}

std::string join(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string shape_text(at::IntArrayRef shape) { return fmt::format("[{}]", fmt::join(shape.vec(), ", ")); }

}  // namespace

std::vector<std::string> LoadReport::warnings() const {
  std::vector<std::string> lines;
  if (!missing.empty())
    lines.push_back(
        fmt::format("Missing key(s) when loading model: {} (they keep their initial values)", join(missing)));
  if (!unexpected.empty())
    lines.push_back(fmt::format("Unexpected key(s) when loading model: {} (left out)", join(unexpected)));
  return lines;
}

LoadReport load_weights(torch::nn::Module& module, const TensorMap& tensors, const std::string& where,
                        Strictness strictness) {
  const TensorMap state = state_of(module);
  LoadReport report;
  std::vector<std::string> mis_shaped;
  for (const auto& [name, target] : state) {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      report.missing.push_back(name);
    else if (found->second.sizes() != target.sizes())
      mis_shaped.push_back(
          fmt::format("{} (file {}, model {})", name, shape_text(found->second.sizes()), shape_text(target.sizes())));
  }
  for (const auto& [name, tensor] : tensors)
    if (!state.contains(name)) report.unexpected.push_back(name);

  if (!mis_shaped.empty() || (strictness == Strictness::kStrict && !report.is_complete())) {
    std::string message = where + ": the weights are not those of this policy.";
    const auto append = [&](std::string_view what, const std::vector<std::string>& names) {
      if (!names.empty()) message += fmt::format(" {}: {}.", what, join(names));
    };
    append("Missing", report.missing);
    append("Unexpected", report.unexpected);
    append("Of another shape (size mismatch)", mis_shaped);
    fail(ErrorKind::kCheckpoint, "{} Check --policy.path and the policy's settings.", message);
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, target] : state)
    if (const auto found = tensors.find(name); found != tensors.end()) at::Tensor(target).copy_(found->second);
  return report;
}

LoadReport load_weights(torch::nn::Module& module, const std::filesystem::path& path, Strictness strictness) {
  const formats::SafetensorsFile file(path);
  TensorMap tensors;
  for (const formats::SafetensorsEntry& entry : file.entries()) {
    // A view of the mapped file: every byte is copied once, into the module. Unaligned ones need an own copy.
    const std::span<const std::byte> bytes = file.bytes(entry);
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % itemsize(entry.dtype) == 0;
    tensors.emplace(entry.name, aligned && !bytes.empty()
                                    ? at::from_blob(const_cast<std::byte*>(bytes.data()), entry.shape,
                                                    at::TensorOptions(torch_dtype(entry.dtype)))
                                    : processors::copy_tensor(file, entry));
  }
  // Metadata gives the other names of a tensor that is stored once.
  for (const auto& [alias, stored] : file.metadata())
    if (const auto found = tensors.find(stored); found != tensors.end()) tensors.emplace(alias, found->second);
  return load_weights(module, tensors, path.string(), strictness);
}

std::vector<formats::StoredRange> save_weights(const torch::nn::Module& module, const std::filesystem::path& path) {
  TensorMap unique;
  formats::SafetensorsMetadata metadata{{"format", "pt"}};
  std::map<const void*, std::string> stored;
  for (const auto& [name, tensor] : state_of(module)) {
    const void* identity = tensor.unsafeGetTensorImpl();
    if (const auto [first, is_new] = stored.emplace(identity, name); is_new)
      unique.emplace(name, tensor);
    else
      metadata.emplace_back(name, first->second);
  }
  return processors::write_tensor_file(path, unique, metadata);
}

}  // namespace lerobot::policies
