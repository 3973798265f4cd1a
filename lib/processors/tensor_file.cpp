#include "lerobot/processors/tensor_file.hpp"

#include <ATen/ops/empty.h>

#include <cstring>

#include "lerobot/core/torch_dtype.hpp"

namespace lerobot::processors {

at::Tensor copy_tensor(const formats::SafetensorsFile& file, const formats::SafetensorsEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(torch_dtype(entry.dtype)));
  const std::span<const std::byte> bytes = file.bytes(entry);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

TensorMap read_tensor_file(const std::filesystem::path& path, ErrorKind kind) {
  const formats::SafetensorsFile file(path, kind);
  TensorMap tensors;
  for (const formats::SafetensorsEntry& entry : file.entries()) tensors.emplace(entry.name, copy_tensor(file, entry));
  return tensors;
}

std::vector<formats::StoredRange> write_tensor_file(const std::filesystem::path& path, const TensorMap& tensors,
                                                    const formats::SafetensorsMetadata& metadata, ErrorKind kind) {
  std::vector<at::Tensor> kept;  // the bytes have to live until they are written
  std::vector<formats::SafetensorsTensor> entries;
  for (const auto& [name, tensor] : tensors) {
    const auto dtype = dtype_from_torch(tensor.scalar_type());
    if (!dtype)
      fail(kind, "{}: tensor \"{}\" has type {}, which safetensors can't hold. Convert it.", path.string(), name,
           c10::toString(tensor.scalar_type()));
    const at::Tensor& on_cpu = kept.emplace_back(tensor.detach().cpu().contiguous());
    entries.push_back({{.name = name, .dtype = *dtype, .shape = tensor.sizes().vec()},
                       {static_cast<const std::byte*>(on_cpu.const_data_ptr()), on_cpu.nbytes()}});
  }
  return formats::write_safetensors(path, entries, metadata, kind);
}

}  // namespace lerobot::processors
