#include "checkpoint/tensor_file.hpp"

#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lerobot/core/error.hpp"
#include "lerobot/core/torch_dtype.hpp"

namespace lerobot::checkpoint {

TensorFile::TensorFile(const std::filesystem::path& path, const formats::ManifestFile* listed)
    : file_(path), verifier_(listed, path) {
  verifier_.require(file_.file_bytes(), 0, file_.data_offset());
}

const formats::SafetensorsEntry* TensorFile::find(std::string_view name) const {
  if (const auto* entry = file_.find(name)) return entry;
  const std::string_view stored = file_.metadata(name);
  return stored.empty() ? nullptr : file_.find(stored);
}

const formats::SafetensorsEntry& TensorFile::at(std::string_view name) const {
  if (const auto* entry = find(name)) return *entry;
  fail(ErrorKind::kCheckpoint, "{}: there is no tensor \"{}\".", file_.path().string(), name);
}

// Rows of a stored tensor, without a copy; for a scalar, `num_rows` is ignored.
at::Tensor TensorFile::view(const formats::SafetensorsEntry& entry, std::int64_t first_row,
                            std::int64_t num_rows) const {
  const std::span<const std::byte> all = file_.bytes(entry);
  std::vector<std::int64_t> shape = entry.shape;
  std::size_t begin = 0;
  if (!shape.empty()) {
    const std::size_t row_nbytes = shape[0] == 0 ? 0 : all.size() / static_cast<std::size_t>(shape[0]);
    begin = static_cast<std::size_t>(first_row) * row_nbytes;
    shape[0] = num_rows;
  }
  const auto options = at::TensorOptions().dtype(torch_dtype(entry.dtype));
  const auto nbytes = static_cast<std::size_t>(c10::multiply_integers(shape)) * itemsize(entry.dtype);
  verifier_.require(file_.file_bytes(), file_.data_offset() + entry.begin + begin, nbytes);
  std::byte* data = const_cast<std::byte*>(all.data() + begin);  // only read
  if (reinterpret_cast<std::uintptr_t>(data) % itemsize(entry.dtype) == 0) return at::from_blob(data, shape, options);
  // A foreign file need not align its tensors, and a misaligned tensor must not reach a kernel.
  at::Tensor out = at::empty(shape, options);
  std::memcpy(out.mutable_data_ptr(), data, nbytes);
  return out;
}

at::Tensor TensorFile::read(std::string_view name) const {
  const auto& entry = at(name);
  return view(entry, 0, entry.shape.empty() ? 1 : entry.shape[0]).clone();
}

void TensorFile::read_into(std::string_view name, const mesh::TensorSlice& to) const {
  const auto& entry = at(name);
  if (entry.shape != to.global_shape)
    fail(ErrorKind::kCheckpoint, "{}: \"{}\" has shape [{}], the run has [{}]. The checkpoint is of another model.",
         file_.path().string(), name, fmt::join(entry.shape, ", "), fmt::join(to.global_shape, ", "));
  const std::int64_t num_rows = to.local.dim() == 0 ? 1 : to.local.size(0);
  if (!entry.shape.empty() && (to.row_begin < 0 || to.row_begin + num_rows > entry.shape[0]))
    fail(ErrorKind::kInternal, "checkpoint: rows [{}, {}) of \"{}\" were asked for, which has {}.", to.row_begin,
         to.row_begin + num_rows, name, entry.shape[0]);
  if (to.local.numel() == 0) return;
  const at::NoGradGuard no_grad;
  to.local.copy_(view(entry, to.row_begin, num_rows));
}

formats::SafetensorsSpec spec_of(const std::string& name, at::ScalarType dtype,
                                 const std::vector<std::int64_t>& shape) {
  const auto stored = dtype_from_torch(dtype);
  if (!stored)
    fail(ErrorKind::kCheckpoint, "checkpoint: tensor \"{}\" has element type {}, which no file holds.", name,
         c10::toString(dtype));
  return {name, *stored, shape};
}

at::Tensor host_copy(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

std::span<const std::byte> bytes_of(const at::Tensor& host) {
  return {static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()};
}

void write_tensor_file(const std::filesystem::path& path, const NamedTensors& tensors,
                       const formats::SafetensorsMetadata& metadata) {
  std::vector<formats::SafetensorsSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.push_back(spec_of(name, tensor.scalar_type(), tensor.sizes().vec()));
  formats::SafetensorsWriter writer(path, std::move(specs), metadata);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor host = host_copy(tensor);
    writer.write(name, bytes_of(host));
  }
  (void)writer.commit();
}

}  // namespace lerobot::checkpoint
