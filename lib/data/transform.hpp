#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lerobot/core/json.hpp"

namespace lerobot::data {

/// Random numbers of one picture: a splitmix64 stream, the same everywhere for the same seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits();
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  ///< [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double uniform(std::pair<double, double> range) { return uniform(range.first, range.second); }
  std::int64_t integer(std::int64_t low, std::int64_t high);  ///< [low, high]
  double normal();

 private:
  std::uint64_t state_;
};

/// One kind of change to a picture. Immutable after construction; the draws carry all randomness.
class Transform {
 public:
  virtual ~Transform() = default;
  /// `image`: uint8 or float32 in [0, 1], [..., C, H, W]. Gives a new tensor, or the same one unchanged.
  [[nodiscard]] virtual at::Tensor apply(const at::Tensor& image, Draws& draws) const = 0;
};

using Range = std::pair<double, double>;

/// The kwargs of one transform. Every failure is an Error{kConfig} with the transform's name.
class Arguments {
 public:
  Arguments(std::string where, const Json& kwargs);

  [[nodiscard]] bool has(const char* key) const;
  [[nodiscard]] double number(const char* key, double fallback);
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t fallback);
  [[nodiscard]] bool boolean(const char* key, bool fallback);
  [[nodiscard]] std::string text(const char* key, const std::string& fallback);
  /// A list of numbers; one number counts as a list of one. Nothing when absent or null.
  [[nodiscard]] std::optional<std::vector<double>> numbers(const char* key);
  /// Two numbers, low <= high, both within `bounds`.
  [[nodiscard]] Range range(const char* key, Range fallback, Range bounds);
  /// As `range`; one number v means [max(center - v, bounds.first), center + v].
  [[nodiscard]] std::optional<Range> around(const char* key, double center, Range bounds);
  /// A probability.
  [[nodiscard]] double probability(const char* key, double fallback);
  /// Height and width: [h, w], or one number for both.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> size(const char* key);
  /// "nearest" or "bilinear", with torchvision's spellings. True for bilinear.
  [[nodiscard]] bool bilinear(bool fallback);

  [[noreturn]] void bad(const char* key, const std::string& expected) const;
  /// Refuses what nobody asked for.
  void done() const;

 private:
  const Json* find(const char* key);
  std::string where_;
  Json kwargs_;
  std::vector<std::string> known_;
};

using TransformFactory = std::unique_ptr<Transform> (*)(Arguments& arguments);
using TransformTable = std::map<std::string, TransformFactory>;

void add_color_transforms(TransformTable& table);
void add_geometry_transforms(TransformTable& table);
void add_camera_transforms(TransformTable& table);  ///< LeRobot's own: noise, blur, shadows, …

/// 255 for uint8, 1 for float.
[[nodiscard]] double max_value(const at::Tensor& image);
/// ratio * image + (1 - ratio) * other, clamped and back in the type of `image`.
[[nodiscard]] at::Tensor blend(const at::Tensor& image, const at::Tensor& other, double ratio);
/// Luma [..., 1, H, W] as float, in the range of `image`.
[[nodiscard]] at::Tensor to_gray(const at::Tensor& image);
/// Same kernel on every channel; edges are left out ("valid").
[[nodiscard]] at::Tensor convolve(const at::Tensor& image_f, const at::Tensor& kernel);

}  // namespace lerobot::data
