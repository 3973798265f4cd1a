#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "lerobot/core/error.hpp"
#include "lerobot/formats/safetensors.hpp"

namespace lerobot::processors {

using TensorMap = std::map<std::string, at::Tensor>;

/// The tensor of a safetensors entry, as an own copy on CPU.
[[nodiscard]] at::Tensor copy_tensor(const formats::SafetensorsFile& file, const formats::SafetensorsEntry& entry);

/// All tensors of a safetensors file, on CPU, owning their memory. Throws: Error{kind}.
[[nodiscard]] TensorMap read_tensor_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::kCheckpoint);

/// Writes tensors of any device as one safetensors file. Throws: Error{kind}, also on a type that the format lacks.
std::vector<formats::StoredRange> write_tensor_file(const std::filesystem::path& path, const TensorMap& tensors,
                                                    const formats::SafetensorsMetadata& metadata = {},
                                                    ErrorKind kind = ErrorKind::kCheckpoint);

}  // namespace lerobot::processors
