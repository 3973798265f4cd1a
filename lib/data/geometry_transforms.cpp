// Changes of place, as in torchvision.transforms.v2. Pixel centres are at integer coordinates; rotation is
// counter-clockwise about the centre of the picture.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/transform.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

at::Tensor resize(const at::Tensor& image, std::int64_t height, std::int64_t width, bool bilinear, bool antialias) {
  if (image.size(-2) == height && image.size(-1) == width) return image;
  const at::Tensor flat = image.reshape({-1, image.size(-3), image.size(-2), image.size(-1)});
  at::Tensor out;
  if (!bilinear)
    out = at::upsample_nearest2d(flat, {height, width});
  else if (antialias)
    out = at::_upsample_bilinear2d_aa(flat, {height, width}, false);
  else if (image.scalar_type() == at::kByte)
    out = at::upsample_bilinear2d(flat.to(at::kFloat), {height, width}, false).round_().clamp_(0, 255).to(at::kByte);
  else
    out = at::upsample_bilinear2d(flat, {height, width}, false);
  std::vector<std::int64_t> sizes = image.sizes().vec();
  sizes[sizes.size() - 2] = height;
  sizes[sizes.size() - 1] = width;
  return out.reshape(sizes);
}

class Resize final : public Transform {
 public:
  explicit Resize(Arguments& arguments)
      : size_(arguments.size("size")),
        shorter_edge_(arguments.numbers("size")->size() == 1),
        max_size_(arguments.integer("max_size", 0)),
        bilinear_(arguments.bilinear(true)),
        antialias_(arguments.boolean("antialias", true)) {
    if (max_size_ < 0 || (max_size_ > 0 && (!shorter_edge_ || max_size_ <= size_.first)))
      arguments.bad("max_size", "more than a single size");
  }

  at::Tensor apply(const at::Tensor& image, Draws&) const override {
    auto [height, width] = size_;
    if (shorter_edge_) {
      const std::int64_t shorter = std::min(image.size(-2), image.size(-1)),
                         longer = std::max(image.size(-2), image.size(-1));
      std::int64_t new_shorter = size_.first, new_longer = size_.first * longer / shorter;
      if (max_size_ > 0 && new_longer > max_size_) {
        new_shorter = max_size_ * new_shorter / new_longer;
        new_longer = max_size_;
      }
      const bool portrait = image.size(-2) >= image.size(-1);
      height = portrait ? new_longer : new_shorter;
      width = portrait ? new_shorter : new_longer;
    }
    return resize(image, height, width, bilinear_, antialias_);
  }

 private:
  std::pair<std::int64_t, std::int64_t> size_;
  bool shorter_edge_;
  std::int64_t max_size_;
  bool bilinear_, antialias_;
};

/// Where a pixel of the result comes from: x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5], about the centre.
using Matrix = std::array<double, 6>;

struct Pose {
  double angle = 0, scale = 1;  // degrees
  double translate_x = 0, translate_y = 0;
  double shear_x = 0, shear_y = 0;  // degrees
};

Matrix inverse_matrix(const Pose& pose) {
  constexpr double kRadians = M_PI / 180.0;
  const double rotation = pose.angle * kRadians, sx = pose.shear_x * kRadians, sy = pose.shear_y * kRadians;
  const double a = std::cos(rotation - sy) / std::cos(sy);
  const double b = -std::cos(rotation - sy) * std::tan(sx) / std::cos(sy) - std::sin(rotation);
  const double c = std::sin(rotation - sy) / std::cos(sy);
  const double d = -std::sin(rotation - sy) * std::tan(sx) / std::cos(sy) + std::cos(rotation);
  Matrix m{d / pose.scale, -b / pose.scale, 0, -c / pose.scale, a / pose.scale, 0};
  m[2] = -m[0] * pose.translate_x - m[1] * pose.translate_y;
  m[5] = -m[3] * pose.translate_x - m[4] * pose.translate_y;
  return m;
}

template <typename T>
void sample_plane(const T* from, T* to, std::int64_t height, std::int64_t width, const Matrix& m, bool bilinear,
                  float fill) {
  const double half_x = static_cast<double>(width - 1) / 2, half_y = static_cast<double>(height - 1) / 2;
  const auto at = [&](std::int64_t y, std::int64_t x, bool& inside) -> float {
    inside = x >= 0 && y >= 0 && x < width && y < height;
    return inside ? static_cast<float>(from[y * width + x]) : 0.0F;
  };
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x, ++to) {
      const double dx = static_cast<double>(x) - half_x, dy = static_cast<double>(y) - half_y;
      const double sx = m[0] * dx + m[1] * dy + m[2] + half_x, sy = m[3] * dx + m[4] * dy + m[5] + half_y;
      bool inside = false;
      if (!bilinear) {
        const float value = at(std::llrint(sy), std::llrint(sx), inside);
        *to = static_cast<T>(inside ? value : fill);
        continue;
      }
      const auto x0 = static_cast<std::int64_t>(std::floor(sx)), y0 = static_cast<std::int64_t>(std::floor(sy));
      const auto fx = static_cast<float>(sx - static_cast<double>(x0)),
                 fy = static_cast<float>(sy - static_cast<double>(y0));
      float value = 0, covered = 0;
      for (int corner = 0; corner < 4; ++corner) {
        const float weight = ((corner & 1) != 0 ? fx : 1 - fx) * ((corner & 2) != 0 ? fy : 1 - fy);
        const float sample = at(y0 + (corner >> 1), x0 + (corner & 1), inside);
        value += weight * sample;
        covered += inside ? weight : 0;
      }
      value = covered * value + (1 - covered) * fill;
      if constexpr (std::is_integral_v<T>) value = std::nearbyint(value);
      *to = static_cast<T>(value);
    }
}

at::Tensor move(const at::Tensor& image, const Pose& pose, bool bilinear, double fill) {
  const at::Tensor from = image.contiguous();
  at::Tensor to = at::empty_like(from);
  const Matrix m = inverse_matrix(pose);
  const std::int64_t height = image.size(-2), width = image.size(-1), area = height * width;
  for (std::int64_t plane = 0; plane < image.numel() / area; ++plane) {
    if (image.scalar_type() == at::kByte)
      sample_plane(from.const_data_ptr<std::uint8_t>() + plane * area, to.data_ptr<std::uint8_t>() + plane * area,
                   height, width, m, bilinear, static_cast<float>(fill));
    else
      sample_plane(from.const_data_ptr<float>() + plane * area, to.data_ptr<float>() + plane * area, height, width, m,
                   bilinear, static_cast<float>(fill));
  }
  return to;
}

/// Degrees d -> [-d, d], or a given [low, high].
Range degrees_of(Arguments& arguments) {
  const auto values = arguments.numbers("degrees");
  if (!values || values->empty() || values->size() > 2 || (values->size() == 1 && values->front() < 0) ||
      values->front() > values->back())
    arguments.bad("degrees", "a number of at least 0 or [low, high]");
  return values->size() == 1 ? Range{-values->front(), values->front()} : Range{values->front(), values->back()};
}

class RandomAffine final : public Transform {
 public:
  explicit RandomAffine(Arguments& arguments)
      : degrees_(degrees_of(arguments)), bilinear_(arguments.bilinear(false)), fill_(arguments.number("fill", 0)) {
    if (const auto translate = arguments.numbers("translate")) {
      if (translate->size() != 2 || translate->front() < 0 || translate->front() > 1 || translate->back() < 0 ||
          translate->back() > 1)
        arguments.bad("translate", "two numbers in 0..1");
      translate_ = {translate->front(), translate->back()};
    }
    if (const auto scale = arguments.numbers("scale")) {
      if (scale->size() != 2 || !(scale->front() > 0) || scale->front() > scale->back())
        arguments.bad("scale", "two numbers above 0");
      scale_ = {scale->front(), scale->back()};
    }
    if (const auto shear = arguments.numbers("shear")) {
      if (shear->size() != 1 && shear->size() != 2 && shear->size() != 4) arguments.bad("shear", "1, 2 or 4 numbers");
      if (shear->size() == 1 && shear->front() < 0) arguments.bad("shear", "a number of at least 0");
      shear_x_ = shear->size() == 1 ? Range{-shear->front(), shear->front()} : Range{(*shear)[0], (*shear)[1]};
      if (shear->size() == 4) shear_y_ = {(*shear)[2], (*shear)[3]};
    }
  }

  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    const double far_x = translate_.first * static_cast<double>(image.size(-1)),
                 far_y = translate_.second * static_cast<double>(image.size(-2));
    Pose pose;
    pose.angle = draws.uniform(degrees_);
    pose.translate_x = std::nearbyint(draws.uniform(-far_x, far_x));
    pose.translate_y = std::nearbyint(draws.uniform(-far_y, far_y));
    pose.scale = draws.uniform(scale_);
    pose.shear_x = draws.uniform(shear_x_);
    pose.shear_y = draws.uniform(shear_y_);
    return move(image, pose, bilinear_, fill_);
  }

 private:
  Range degrees_;
  bool bilinear_;
  double fill_;
  Range translate_{0, 0}, scale_{1, 1}, shear_x_{0, 0}, shear_y_{0, 0};
};

class RandomRotation final : public Transform {
 public:
  explicit RandomRotation(Arguments& arguments)
      : degrees_(degrees_of(arguments)), bilinear_(arguments.bilinear(false)), fill_(arguments.number("fill", 0)) {}
  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    Pose pose;
    pose.angle = -draws.uniform(degrees_);  // rotation counts the other way round from an affine angle
    return move(image, pose, bilinear_, fill_);
  }

 private:
  Range degrees_;
  bool bilinear_;
  double fill_;
};

class RandomFlip final : public Transform {
 public:
  RandomFlip(Arguments& arguments, std::int64_t dim) : p_(arguments.probability("p", 0.5)), dim_(dim) {}
  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    return draws.uniform() < p_ ? image.flip({dim_}) : image;
  }

 private:
  double p_;
  std::int64_t dim_;
};

at::Tensor crop(const at::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width) {
  return image.slice(-2, top, top + height).slice(-1, left, left + width);
}

class CenterCrop final : public Transform {
 public:
  explicit CenterCrop(Arguments& arguments) : size_(arguments.size("size")) {}
  at::Tensor apply(const at::Tensor& image, Draws&) const override {
    const auto [height, width] = size_;
    at::Tensor out = image;
    const std::int64_t more_y = std::max<std::int64_t>(height - image.size(-2), 0),
                       more_x = std::max<std::int64_t>(width - image.size(-1), 0);
    if (more_x > 0 || more_y > 0)
      out = at::constant_pad_nd(out, {more_x / 2, (more_x + 1) / 2, more_y / 2, (more_y + 1) / 2}, 0);
    const auto start = [](std::int64_t has, std::int64_t wants) {
      return std::llrint(static_cast<double>(has - wants) / 2.0);
    };
    return crop(out, start(out.size(-2), height), start(out.size(-1), width), height, width);
  }

 private:
  std::pair<std::int64_t, std::int64_t> size_;
};

class RandomCrop final : public Transform {
 public:
  explicit RandomCrop(Arguments& arguments)
      : size_(arguments.size("size")),
        pad_if_needed_(arguments.boolean("pad_if_needed", false)),
        fill_(arguments.number("fill", 0)) {}
  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    const auto [height, width] = size_;
    at::Tensor out = image;
    const std::int64_t more_y = std::max<std::int64_t>(height - image.size(-2), 0),
                       more_x = std::max<std::int64_t>(width - image.size(-1), 0);
    if ((more_x > 0 || more_y > 0) && !pad_if_needed_)
      fail(ErrorKind::kConfig,
           "dataset.image_transforms: RandomCrop to {}x{} of a picture of {}x{}; set pad_if_needed or a smaller size.",
           height, width, image.size(-2), image.size(-1));
    if (more_x > 0 || more_y > 0) out = at::constant_pad_nd(out, {more_x, more_x, more_y, more_y}, fill_);
    const std::int64_t top = draws.integer(0, out.size(-2) - height), left = draws.integer(0, out.size(-1) - width);
    return crop(out, top, left, height, width);
  }

 private:
  std::pair<std::int64_t, std::int64_t> size_;
  bool pad_if_needed_;
  double fill_;
};

class RandomResizedCrop final : public Transform {
 public:
  explicit RandomResizedCrop(Arguments& arguments)
      : size_(arguments.size("size")),
        scale_(arguments.range("scale", {0.08, 1.0}, {1e-6, 1e6})),
        ratio_(arguments.range("ratio", {3.0 / 4.0, 4.0 / 3.0}, {1e-6, 1e6})),
        bilinear_(arguments.bilinear(true)),
        antialias_(arguments.boolean("antialias", true)) {}

  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    const std::int64_t height = image.size(-2), width = image.size(-1);
    const auto resized = [&](std::int64_t top, std::int64_t left, std::int64_t h, std::int64_t w) {
      return resize(crop(image, top, left, h, w), size_.first, size_.second, bilinear_, antialias_);
    };
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = static_cast<double>(height * width) * draws.uniform(scale_);
      const double aspect = std::exp(draws.uniform(std::log(ratio_.first), std::log(ratio_.second)));
      const auto w = static_cast<std::int64_t>(std::llrint(std::sqrt(area * aspect))),
                 h = static_cast<std::int64_t>(std::llrint(std::sqrt(area / aspect)));
      if (w < 1 || h < 1 || w > width || h > height) continue;
      const std::int64_t top = draws.integer(0, height - h), left = draws.integer(0, width - w);
      return resized(top, left, h, w);
    }
    // No draw fits: the largest centred crop whose sides are in range.
    const double aspect = static_cast<double>(width) / static_cast<double>(height);
    std::int64_t h = height, w = width;
    if (aspect < ratio_.first)
      h = static_cast<std::int64_t>(std::llrint(static_cast<double>(w) / ratio_.first));
    else if (aspect > ratio_.second)
      w = static_cast<std::int64_t>(std::llrint(static_cast<double>(h) * ratio_.second));
    return resized((height - h) / 2, (width - w) / 2, h, w);
  }

 private:
  std::pair<std::int64_t, std::int64_t> size_;
  Range scale_, ratio_;
  bool bilinear_, antialias_;
};

class Pad final : public Transform {
 public:
  explicit Pad(Arguments& arguments) : fill_(arguments.number("fill", 0)) {
    const auto values = arguments.numbers("padding");
    if (!values || (values->size() != 1 && values->size() != 2 && values->size() != 4))
      arguments.bad("padding", "1, 2 or 4 numbers");
    for (const double value : *values)
      if (!(value >= 0 && value <= 1 << 14) || value != std::floor(value))
        arguments.bad("padding", "whole numbers of at least 0");
    const auto side = [&](std::size_t i) { return static_cast<std::int64_t>((*values)[i % values->size()]); };
    sides_ = {side(0), side(values->size() == 4 ? 2 : 0), side(1),
              side(values->size() == 4 ? 3 : 1)};  // left right top bottom
    if (arguments.text("padding_mode", "constant") != "constant") arguments.bad("padding_mode", "constant");
  }
  at::Tensor apply(const at::Tensor& image, Draws&) const override { return at::constant_pad_nd(image, sides_, fill_); }

 private:
  double fill_;
  std::array<std::int64_t, 4> sides_{};
};

class GaussianBlur final : public Transform {
 public:
  explicit GaussianBlur(Arguments& arguments)
      : size_(arguments.size("kernel_size")), sigma_(arguments.range("sigma", {0.1, 2.0}, {1e-6, 1e6})) {
    if (size_.first % 2 == 0 || size_.second % 2 == 0) arguments.bad("kernel_size", "odd sizes");
  }
  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    const double sigma = draws.uniform(sigma_);
    const auto taps = [&](std::int64_t size) {
      const at::Tensor x =
          at::linspace(-static_cast<double>(size - 1) / 2, static_cast<double>(size - 1) / 2, size) / sigma;
      return at::softmax(x.square().neg_().mul_(0.5), 0);
    };
    // torchvision gives kernel_size as [width, height].
    const at::Tensor kernel = taps(size_.second).unsqueeze(1) * taps(size_.first).unsqueeze(0);
    const std::int64_t rx = size_.first / 2, ry = size_.second / 2;
    const at::Tensor flat = image.to(at::kFloat).reshape({-1, image.size(-3), image.size(-2), image.size(-1)});
    const at::Tensor out = convolve(at::reflection_pad2d(flat, {rx, rx, ry, ry}), kernel).reshape(image.sizes());
    return image.scalar_type() == at::kByte ? out.round().to(at::kByte) : out;
  }

 private:
  std::pair<std::int64_t, std::int64_t> size_;
  Range sigma_;
};

template <typename T>
std::unique_ptr<Transform> make(Arguments& arguments) {
  return std::make_unique<T>(arguments);
}

}  // namespace

void add_geometry_transforms(TransformTable& table) {
  table["CenterCrop"] = make<CenterCrop>;
  table["GaussianBlur"] = make<GaussianBlur>;
  table["Pad"] = make<Pad>;
  table["RandomAffine"] = make<RandomAffine>;
  table["RandomCrop"] = make<RandomCrop>;
  table["RandomHorizontalFlip"] = [](Arguments& a) -> std::unique_ptr<Transform> {
    return std::make_unique<RandomFlip>(a, -1);
  };
  table["RandomResizedCrop"] = make<RandomResizedCrop>;
  table["RandomRotation"] = make<RandomRotation>;
  table["RandomVerticalFlip"] = [](Arguments& a) -> std::unique_ptr<Transform> {
    return std::make_unique<RandomFlip>(a, -2);
  };
  table["Resize"] = make<Resize>;
}

}  // namespace lerobot::data
