#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>

#include "lerobot/core/dtype.hpp"
#include "lerobot/data/dataset.hpp"
#include "lerobot/formats/safetensors.hpp"
#include "support/collecting_logger.hpp"
#include "support/dataset_writer.hpp"
#include "support/temp_dir.hpp"

namespace lerobot::test {

inline const std::filesystem::path kDatasets = std::filesystem::path(LEROBOT_TEST_DATA) / "datasets";

inline std::shared_ptr<data::Dataset> open_dataset(const std::filesystem::path& root,
                                                   data::DatasetOptions options = {}) {
  CollectingLogger logger;
  auto metadata = std::make_shared<const data::Metadata>(data::read_metadata(root, logger));
  return std::make_shared<data::Dataset>(std::move(metadata), std::move(options), logger);
}

/// A tensor of a safetensors file; golden files hold float32, int64, uint8 and bool.
inline at::Tensor read_tensor(const formats::SafetensorsFile& file, const std::string& name) {
  const formats::SafetensorsEntry& entry = file.at(name);
  const at::ScalarType type = entry.dtype == DType::kF32   ? at::kFloat
                              : entry.dtype == DType::kI64 ? at::kLong
                              : entry.dtype == DType::kU8  ? at::kByte
                                                           : at::kBool;
  at::Tensor out = at::empty(entry.shape, type);
  const auto bytes = file.bytes(entry);
  std::memcpy(out.data_ptr(), bytes.data(), bytes.size());
  return out;
}

/// A written dataset in a folder of its own.
struct Fixture {
  explicit Fixture(const WrittenDataset& dataset) { write_dataset(dir.path(), dataset); }
  TempDir dir;
  [[nodiscard]] std::shared_ptr<data::Dataset> open(data::DatasetOptions options = {}) const {
    return open_dataset(dir.path(), std::move(options));
  }
};

inline std::vector<double> seconds(std::initializer_list<int> frames, double fps = 10) {
  std::vector<double> out;
  for (const int frame : frames) out.push_back(frame / fps);
  return out;
}

inline std::vector<std::int64_t> ints(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).flatten().contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

}  // namespace lerobot::test
