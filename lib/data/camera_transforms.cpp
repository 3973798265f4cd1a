// LeRobot's own transforms, which imitate cameras and light. They change float pictures only and give uint8 back as it
// came: in training, video frames are uint8 and pass through, pictures from parquet are float and do not.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/jpeg_artifacts.hpp"
#include "data/transform.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

class FloatTransform : public Transform {
 public:
  at::Tensor apply(const at::Tensor& image, Draws& draws) const final {
    return image.is_floating_point() ? change(image, draws) : image;
  }

 protected:
  [[nodiscard]] virtual at::Tensor change(const at::Tensor& image, Draws& draws) const = 0;
};

/// Range of whole numbers.
std::pair<std::int64_t, std::int64_t> integers(Arguments& arguments, const char* key, Range fallback, Range bounds) {
  const Range range = arguments.range(key, fallback, bounds);
  if (range.first != std::floor(range.first) || range.second != std::floor(range.second))
    arguments.bad(key, "whole numbers");
  return {static_cast<std::int64_t>(range.first), static_cast<std::int64_t>(range.second)};
}

class GaussianNoise final : public FloatTransform {
 public:
  explicit GaussianNoise(Arguments& arguments) : std_(arguments.range("std", {5, 25}, {0, 1e6})) {
    if (const auto given = arguments.numbers("std"); given && given->size() == 1) std_.first = 0;
  }

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    const auto scale = static_cast<float>(draws.uniform(std_) / 255.0);
    at::Tensor out = image.clone().contiguous();
    auto* value = out.data_ptr<float>();
    for (std::int64_t i = 0; i < out.numel(); ++i) value[i] += scale * static_cast<float>(draws.normal());
    return out.clamp_(0, 1);
  }

 private:
  Range std_;
};

class MotionBlur final : public FloatTransform {
 public:
  explicit MotionBlur(Arguments& arguments) : sizes_(integers(arguments, "kernel_size", {3, 11}, {1, 1001})) {
    sizes_.first += (sizes_.first + 1) % 2;
    if (sizes_.first > sizes_.second) arguments.bad("kernel_size", "a range with an odd number in it");
  }

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    const std::int64_t size = sizes_.first + 2 * draws.integer(0, (sizes_.second - sizes_.first) / 2),
                       radius = size / 2;
    const double angle = draws.uniform(0, 2 * M_PI);
    at::Tensor kernel = at::zeros({size, size});
    for (std::int64_t i = -radius; i <= radius; ++i) {
      const double along = static_cast<double>(i);
      kernel[std::llrint(along * std::sin(angle)) + radius][std::llrint(along * std::cos(angle)) + radius] = 1;
    }
    kernel /= kernel.sum();
    const at::Tensor flat = image.reshape({-1, image.size(-3), image.size(-2), image.size(-1)});
    return convolve(at::replication_pad2d(flat, {radius, radius, radius, radius}), kernel)
        .reshape(image.sizes())
        .clamp(0, 1);
  }

 private:
  std::pair<std::int64_t, std::int64_t> sizes_;
};

class JPEGCompression final : public FloatTransform {
 public:
  explicit JPEGCompression(Arguments& arguments) : quality_(integers(arguments, "quality", {15, 75}, {1, 100})) {}

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    const auto quality = static_cast<int>(draws.integer(quality_.first, quality_.second));
    const std::int64_t channels = image.size(-3), height = image.size(-2), width = image.size(-1);
    at::Tensor bytes = image.clamp(0, 1).mul_(255).round_().to(at::kByte).contiguous();
    for (std::int64_t at = 0; at < bytes.numel(); at += channels * height * width)
      add_jpeg_artifacts(bytes.data_ptr<std::uint8_t>() + at, channels, height, width, quality);
    return bytes.to(at::kFloat).div_(255.0F);
  }

 private:
  std::pair<std::int64_t, std::int64_t> quality_;
};

class GaussianPatchBrightness final : public FloatTransform {
 public:
  explicit GaussianPatchBrightness(Arguments& arguments)
      : num_patches_(integers(arguments, "num_patches", {1, 4}, {1, 1000})),
        sigma_(arguments.range("sigma_range", {0.05, 0.25}, {1e-6, 1e6})),
        factor_(arguments.range("factor_range", {0.4, 1.6}, {0, 1e6})) {}

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    const std::int64_t height = image.size(-2), width = image.size(-1);
    const at::Tensor y = at::linspace(0, 1, height).unsqueeze(1), x = at::linspace(0, 1, width).unsqueeze(0);
    at::Tensor mask = at::ones({height, width});
    for (std::int64_t patch = draws.integer(num_patches_.first, num_patches_.second); patch > 0; --patch) {
      const double cy = draws.uniform(), cx = draws.uniform(), sigma = draws.uniform(sigma_),
                   factor = draws.uniform(factor_);
      const at::Tensor bump = ((y - cy).square() + (x - cx).square()).div_(-2 * sigma * sigma).exp_();
      mask.mul_(bump.mul_(factor - 1.0).add_(1.0));
    }
    return (image * mask).clamp_(0, 1);
  }

 private:
  std::pair<std::int64_t, std::int64_t> num_patches_;
  Range sigma_, factor_;
};

class RandomShadow final : public FloatTransform {
 public:
  explicit RandomShadow(Arguments& arguments) : opacity_(arguments.range("opacity", {0.3, 0.6}, {0, 1})) {}

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    const double opacity = draws.uniform(opacity_), start = draws.uniform(), share = draws.uniform(1.0 / 3, 2.0 / 3);
    const double direction = draws.uniform() < 0.5 ? -1.0 : 1.0;
    const std::int64_t height = image.size(-2), width = image.size(-1);
    const auto band = std::clamp<std::int64_t>(std::llrint(share * static_cast<double>(width)), 1, width);
    const auto begin = std::llrint(start * static_cast<double>(width - band));
    at::Tensor mask = at::ones({1, 1, height, width});
    mask.slice(-1, begin, begin + band).fill_(1.0 + direction * opacity);
    const std::int64_t soft = std::min<std::int64_t>({8, height, width});  // edges fade over this many pixels
    if (soft > 1) mask = at::upsample_bilinear2d(at::avg_pool2d(mask, soft, soft), {height, width}, false);
    return (image * mask[0][0]).clamp_(0, 1);
  }

 private:
  Range opacity_;
};

class CoarseDropout final : public FloatTransform {
 public:
  explicit CoarseDropout(Arguments& arguments)
      : max_holes_(arguments.integer("max_holes", 8)),
        height_(arguments.number("max_height_frac", 0.07)),
        width_(arguments.number("max_width_frac", 0.07)),
        fill_(arguments.number("fill_value", 0)) {
    if (max_holes_ < 1) arguments.bad("max_holes", "1 or more");
    if (!(height_ > 0 && height_ <= 1)) arguments.bad("max_height_frac", "a share above 0, at most 1");
    if (!(width_ > 0 && width_ <= 1)) arguments.bad("max_width_frac", "a share above 0, at most 1");
    if (!(fill_ >= 0 && fill_ <= 1)) arguments.bad("fill_value", "a number in 0..1");
  }

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    const auto extent = [&](double share, std::int64_t size) {
      return std::clamp<std::int64_t>(std::llrint(share * static_cast<double>(size)), 1, size);
    };
    at::Tensor out = image.clone();
    for (std::int64_t hole = draws.integer(1, max_holes_); hole > 0; --hole) {
      const std::int64_t h = extent(draws.uniform() * height_, image.size(-2)),
                         w = extent(draws.uniform() * width_, image.size(-1));
      const auto y = std::llrint(draws.uniform() * static_cast<double>(image.size(-2) - h));
      const auto x = std::llrint(draws.uniform() * static_cast<double>(image.size(-1) - w));
      out.slice(-2, y, y + h).slice(-1, x, x + w).fill_(fill_);
    }
    return out;
  }

 private:
  std::int64_t max_holes_;
  double height_, width_, fill_;
};

class GammaCorrection final : public FloatTransform {
 public:
  explicit GammaCorrection(Arguments& arguments) : gamma_(arguments.range("gamma", {0.5, 2.0}, {1e-6, 1e6})) {
    if (const auto given = arguments.numbers("gamma"); given && given->size() == 1)
      gamma_ = {std::min(given->front(), 1 / given->front()), std::max(given->front(), 1 / given->front())};
  }

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    const double exponent = std::exp(draws.uniform(std::log(gamma_.first), std::log(gamma_.second)));
    return image.pow(exponent).clamp_(0, 1);
  }

 private:
  Range gamma_;
};

class PlanckianJitter final : public FloatTransform {
 public:
  explicit PlanckianJitter(Arguments& arguments)
      : kelvin_(integers(arguments, "temperature", {kFirst, kLast}, {kFirst, kLast})) {}

 protected:
  at::Tensor change(const at::Tensor& image, Draws& draws) const override {
    if (image.size(-3) != 3)
      fail(ErrorKind::kConfig, "dataset.image_transforms: PlanckianJitter needs 3 channels, got {}.", image.size(-3));
    const double place = (static_cast<double>(draws.integer(kelvin_.first, kelvin_.second)) - kFirst) / kStep;
    const auto left = static_cast<std::size_t>(place), right = std::min(left + 1, kColors.size() - 1);
    const auto weight = static_cast<float>(place - static_cast<double>(left));
    const auto at = [&](std::size_t c) { return kColors[left][c] + weight * (kColors[right][c] - kColors[left][c]); };
    // Green keeps its value, so that brightness hardly moves.
    const at::Tensor scale = at::tensor({at(0) / at(1), 1.0F, at(2) / at(1)}).view({3, 1, 1});
    return (image * scale).clamp_(0, 1);
  }

 private:
  static constexpr double kFirst = 3000, kLast = 15000, kStep = 500;
  /// Red, green and blue of a black body every 500 K from 3000 K, as published with "Planckian Jitter" (Zini et al.
  /// 2022).
  static constexpr std::array<std::array<float, 3>, 25> kColors{{
      {0.6743F, 0.4029F, 0.0013F}, {0.6281F, 0.4241F, 0.1665F}, {0.5919F, 0.4372F, 0.2513F},
      {0.5623F, 0.4457F, 0.3154F}, {0.5376F, 0.4515F, 0.3672F}, {0.5163F, 0.4555F, 0.4103F},
      {0.4979F, 0.4584F, 0.4468F}, {0.4816F, 0.4604F, 0.4782F}, {0.4672F, 0.4619F, 0.5053F},
      {0.4542F, 0.4630F, 0.5289F}, {0.4426F, 0.4638F, 0.5497F}, {0.4320F, 0.4644F, 0.5681F},
      {0.4223F, 0.4648F, 0.5844F}, {0.4135F, 0.4651F, 0.5990F}, {0.4054F, 0.4653F, 0.6121F},
      {0.3980F, 0.4654F, 0.6239F}, {0.3911F, 0.4655F, 0.6346F}, {0.3847F, 0.4656F, 0.6444F},
      {0.3787F, 0.4656F, 0.6532F}, {0.3732F, 0.4656F, 0.6613F}, {0.3680F, 0.4655F, 0.6688F},
      {0.3632F, 0.4655F, 0.6756F}, {0.3586F, 0.4655F, 0.6820F}, {0.3544F, 0.4654F, 0.6878F},
      {0.3503F, 0.4653F, 0.6933F},
  }};
  std::pair<std::int64_t, std::int64_t> kelvin_;
};

template <typename T>
std::unique_ptr<Transform> make(Arguments& arguments) {
  return std::make_unique<T>(arguments);
}

}  // namespace

void add_camera_transforms(TransformTable& table) {
  table["CoarseDropout"] = make<CoarseDropout>;
  table["GammaCorrection"] = make<GammaCorrection>;
  table["GaussianNoise"] = make<GaussianNoise>;
  table["GaussianPatchBrightness"] = make<GaussianPatchBrightness>;
  table["JPEGCompression"] = make<JPEGCompression>;
  table["MotionBlur"] = make<MotionBlur>;
  table["PlanckianJitter"] = make<PlanckianJitter>;
  table["RandomShadow"] = make<RandomShadow>;
}

}  // namespace lerobot::data
