#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lerobot/formats/manifest.hpp"
#include "lerobot/formats/safetensors.hpp"
#include "lerobot/mesh/tensor_slice.hpp"

namespace lerobot::checkpoint {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// A safetensors file whose tensors are read as tensors, each verified against the manifest when it is first read.
class TensorFile {
 public:
  /// `listed`: what the checkpoint's manifest knows of the file, or null; it must outlive this object.
  /// Throws: Error{kCheckpoint} naming the file and what is wrong with it.
  explicit TensorFile(const std::filesystem::path& path, const formats::ManifestFile* listed = nullptr);

  [[nodiscard]] const formats::SafetensorsFile& file() const { return file_; }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The entry that holds `name`: its own, or that of the tensor it is stored as an alias of; null when there is none.
  [[nodiscard]] const formats::SafetensorsEntry* find(std::string_view name) const;

  /// A copy of a whole tensor.
  [[nodiscard]] at::Tensor read(std::string_view name) const;

  /// Fills `to.local` with the rows of the stored tensor that it stands for; dtypes may differ.
  /// Throws: Error{kCheckpoint} when the tensor is missing or has another shape than `to.global_shape`.
  void read_into(std::string_view name, const mesh::TensorSlice& to) const;

 private:
  [[nodiscard]] const formats::SafetensorsEntry& at(std::string_view name) const;
  [[nodiscard]] at::Tensor view(const formats::SafetensorsEntry& entry, std::int64_t first_row,
                                std::int64_t num_rows) const;

  formats::SafetensorsFile file_;
  mutable formats::RangeVerifier verifier_;
};

/// The head of a tensor for a file. Throws: Error{kCheckpoint} for an element type that no file holds.
[[nodiscard]] formats::SafetensorsSpec spec_of(const std::string& name, at::ScalarType dtype,
                                               const std::vector<std::int64_t>& shape);

/// The elements of a tensor in row-major order on CPU; keep the result alive while its bytes are used.
[[nodiscard]] at::Tensor host_copy(const at::Tensor& tensor);
[[nodiscard]] std::span<const std::byte> bytes_of(const at::Tensor& host);

/// Writes whole tensors to a safetensors file.
void write_tensor_file(const std::filesystem::path& path, const NamedTensors& tensors,
                       const formats::SafetensorsMetadata& metadata = {});

}  // namespace lerobot::checkpoint
