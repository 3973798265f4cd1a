#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot::data {

/// One entry of dataset.image_transforms.tfs.
struct ImageTransformConfig {
  std::string name = {};
  double weight = 1.0;            ///< of being drawn; 0 or less: never
  std::string type = "Identity";  ///< a class of torchvision.transforms.v2, or one of LeRobot's own
  Json kwargs = Json::object();   ///< its arguments, by torchvision's names
};

/// dataset.image_transforms.
struct ImageTransformsConfig {
  bool enable = false;
  std::int64_t max_num_transforms = 3;
  bool random_order = false;
  std::vector<ImageTransformConfig> tfs = {};
};

/// Reads the JSON object of dataset.image_transforms; absent keys keep the defaults above.
/// Throws: Error{kConfig} naming the key.
[[nodiscard]] ImageTransformsConfig parse_image_transforms(const Json& json);

/// Names of all types that can be built, sorted.
[[nodiscard]] std::vector<std::string> image_transform_types();

class Transform;

/// A random subset of transforms for each picture.
///
/// min(max_num_transforms, number with weight above 0) of them are drawn without replacement, by weight; they run in
/// the order of the list, or in drawn order with random_order. Draws depend on the seed and the camera's name only.
class ImageTransforms {
 public:
  /// Throws: Error{kConfig} for an unknown type (with the known ones) or an argument that is unknown or out of range.
  explicit ImageTransforms(const ImageTransformsConfig& config);
  ~ImageTransforms();

  /// `image`: uint8 or float32 in [0, 1], [C, H, W] or [T, C, H, W]; a window is changed as a whole.
  [[nodiscard]] at::Tensor apply(const at::Tensor& image, std::uint64_t seed, const std::string& camera) const;

 private:
  std::vector<std::unique_ptr<Transform>> transforms_;
  std::vector<double> weights_;
  std::size_t num_applied_ = 0;
  bool random_order_ = false;
};

}  // namespace lerobot::data
