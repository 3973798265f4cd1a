#pragma once

#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lerobot/checkpoint/checkpoint.hpp"
#include "lerobot/formats/safetensors.hpp"

namespace lerobot::test {

namespace fs = std::filesystem;

inline const fs::path kGolden = LEROBOT_TEST_DATA "/checkpoints";

/// A folder of its own for each test, removed at its end.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "lerobot-checkpoint-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

inline std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Zero tensors for every entry of a safetensors file, in its order; all are of float32 in the golden data.
inline mesh::StateDict zeros_like_file(const fs::path& path, const std::string& prefix = {}) {
  mesh::StateDict out;
  const formats::SafetensorsFile file(path);
  for (const auto& entry : file.entries())
    if (entry.name.starts_with(prefix))
      out.emplace_back(entry.name.substr(prefix.size()),
                       mesh::TensorSlice{at::zeros(entry.shape), entry.shape, 0, false});
  return out;
}

inline at::Tensor tensor_in(const formats::SafetensorsFile& file, const std::string& name) {
  const auto& entry = file.at(name);
  return at::from_blob(const_cast<std::byte*>(file.bytes(entry).data()), entry.shape, at::kFloat).clone();
}

/// Bit equality: also of NaN and of the two zeros.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         (a.numel() == 0 ||
          std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(), a.nbytes()) == 0);
}

}  // namespace lerobot::test
