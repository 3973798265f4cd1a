#include "lerobot/data/batch.hpp"

#include <ATen/ATen.h>

namespace lerobot::data {

at::Tensor to_float_image(const at::Tensor& image) {
  if (image.scalar_type() != at::kByte) return image;
  // A true division: multiplying by 1/255 would round differently from LeRobot (Python).
  return image.to(at::kFloat).div_(255.0F);
}

void to_float_images(Batch& batch, const std::vector<std::string>& camera_keys) {
  for (const std::string& key : camera_keys)
    if (const auto it = batch.tensors.find(key); it != batch.tensors.end()) it->second = to_float_image(it->second);
}

}  // namespace lerobot::data
