#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/columns.hpp"
#include "lerobot/data/dataset.hpp"

namespace lerobot::data {

/// The table that cameras look rows up in.
struct Table {
  std::shared_ptr<const Metadata> metadata;
  Columns columns;
};

/// Pictures of one camera by row of the table.
class Camera {
 public:
  virtual ~Camera() = default;
  /// kByte for colour pictures, kFloat for depth.
  [[nodiscard]] virtual at::ScalarType type() const = 0;
  /// C, H, W.
  [[nodiscard]] virtual std::vector<std::int64_t> frame_sizes() const = 0;
  /// Writes the pictures of `rows` one after the other to `out`. Thread-safe.
  virtual void read(std::span<const std::int64_t> rows, void* out) const = 0;
};

[[nodiscard]] std::unique_ptr<Camera> make_image_camera(std::shared_ptr<const Table> table, const Feature& feature,
                                                        const DatasetOptions& options);
[[nodiscard]] std::unique_ptr<Camera> make_video_camera(std::shared_ptr<const Table> table, const Feature& feature,
                                                        const DatasetOptions& options,
                                                        std::shared_ptr<VideoDecoderCache> decoders);

/// "index 12 (episode 3, frame 4)" for messages.
[[nodiscard]] std::string describe_row(const Table& table, std::int64_t row);

}  // namespace lerobot::data
