// Color changes with the arithmetic of torchvision.transforms.v2: uint8 results are truncated, not rounded, because a
// float result is cast; luma is 0.2989 R + 0.587 G + 0.114 B.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/transform.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {

double max_value(const at::Tensor& image) { return image.scalar_type() == at::kByte ? 255.0 : 1.0; }

at::Tensor blend(const at::Tensor& image, const at::Tensor& other, double ratio) {
  return image.mul(static_cast<float>(ratio))
      .add_(other, 1.0 - ratio)
      .clamp_(0.0, max_value(image))
      .to(image.scalar_type());
}

at::Tensor to_gray(const at::Tensor& image) {
  const at::Tensor f = image.to(at::kFloat);
  if (image.size(-3) == 1) return f;
  return f.select(-3, 0).mul(0.2989).add_(f.select(-3, 1), 0.587).add_(f.select(-3, 2), 0.114).unsqueeze(-3);
}

at::Tensor convolve(const at::Tensor& image_f, const at::Tensor& kernel) {
  const std::int64_t channels = image_f.size(-3);
  at::Tensor flat = image_f.reshape({-1, channels, image_f.size(-2), image_f.size(-1)});
  flat = at::conv2d(flat, kernel.expand({channels, 1, kernel.size(0), kernel.size(1)}), std::optional<at::Tensor>(),
                    at::IntArrayRef{1, 1}, at::IntArrayRef{0, 0}, at::IntArrayRef{1, 1}, channels);
  std::vector<std::int64_t> sizes = image_f.sizes().vec();
  sizes[sizes.size() - 2] = flat.size(-2);
  sizes[sizes.size() - 1] = flat.size(-1);
  return flat.reshape(sizes);
}

namespace {

at::Tensor adjust_brightness(const at::Tensor& image, double factor) {
  return image.mul(static_cast<float>(factor)).clamp_(0.0, max_value(image)).to(image.scalar_type());
}

at::Tensor adjust_contrast(const at::Tensor& image, double factor) {
  at::Tensor gray = to_gray(image);
  if (image.scalar_type() == at::kByte) gray = gray.floor();
  return blend(image, gray.mean({-3, -2, -1}, true), factor);
}

at::Tensor adjust_saturation(const at::Tensor& image, double factor) {
  if (image.size(-3) == 1) return image;
  at::Tensor gray = to_gray(image);
  if (image.scalar_type() == at::kByte) gray = gray.floor();
  return blend(image, gray, factor);
}

/// Turns the hue of one pixel; all in [0, 1].
void turn_hue(float& r, float& g, float& b, float turn) {
  const float high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
  const float saturation = range / (high == low ? 1.0F : high), divisor = high == low ? 1.0F : range;
  const float rc = (high - r) / divisor, gc = (high - g) / divisor, bc = (high - b) / divisor;
  float hue = high == r ? bc - gc : high == g ? 2.0F + rc - bc : 4.0F + gc - rc;
  hue = std::fmod(hue * (1.0F / 6.0F) + 1.0F, 1.0F) + turn;
  hue -= std::floor(hue);
  const float scaled = hue * 6.0F, sector = std::floor(scaled), part = saturation * (scaled - sector);
  const auto unit = [](float x) { return std::clamp(x, 0.0F, 1.0F); };
  const float q = unit((1.0F - part) * high), t = unit((part + (1.0F - saturation)) * high),
              p = unit((1.0F - saturation) * high);
  switch (static_cast<int>(sector) % 6) {
    case 0:
      r = high, g = t, b = p;
      break;
    case 1:
      r = q, g = high, b = p;
      break;
    case 2:
      r = p, g = high, b = t;
      break;
    case 3:
      r = p, g = q, b = high;
      break;
    case 4:
      r = t, g = p, b = high;
      break;
    default:
      r = high, g = p, b = q;
      break;
  }
}

at::Tensor adjust_hue(const at::Tensor& image, double factor) {
  if (image.size(-3) == 1) return image;
  const bool bytes = image.scalar_type() == at::kByte;
  at::Tensor out = bytes ? image.to(at::kFloat).div_(255.0F) : image.clone();
  out = out.contiguous();
  const std::int64_t area = out.size(-2) * out.size(-1);
  auto* pixel = out.data_ptr<float>();
  for (std::int64_t picture = 0; picture < out.numel() / (3 * area); ++picture, pixel += 3 * area)
    for (std::int64_t i = 0; i < area; ++i)
      turn_hue(pixel[i], pixel[area + i], pixel[2 * area + i], static_cast<float>(factor));
  return bytes ? out.mul_(255.999F).to(at::kByte) : out;
}

at::Tensor adjust_sharpness(const at::Tensor& image, double factor) {
  if (image.size(-1) <= 2 || image.size(-2) <= 2) return image;
  const bool bytes = image.scalar_type() == at::kByte;
  at::Tensor kernel = at::full({3, 3}, 1.0F / 13.0F);
  kernel[1][1] = 5.0F / 13.0F;
  at::Tensor out = bytes ? image.to(at::kFloat) : image.clone();
  at::Tensor blurred = convolve(out, kernel);
  if (bytes) blurred.round_();
  at::Tensor inner = out.slice(-2, 1, -1).slice(-1, 1, -1);
  inner.add_(blurred.sub_(inner), 1.0 - factor);
  return out.clamp_(0.0, max_value(image)).to(image.scalar_type());
}

class ColorJitter final : public Transform {
 public:
  explicit ColorJitter(Arguments& arguments)
      : ranges_{arguments.around("brightness", 1, {0, 1e6}), arguments.around("contrast", 1, {0, 1e6}),
                arguments.around("saturation", 1, {0, 1e6}), arguments.around("hue", 0, {-0.5, 0.5})} {}

  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    constexpr std::array kAdjust{adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue};
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::size_t i = 3; i > 0; --i)
      std::swap(order[i], order[static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(i)))]);
    at::Tensor out = image;
    for (const std::size_t i : order)
      if (ranges_[i]) out = kAdjust[i](out, draws.uniform(*ranges_[i]));
    return out;
  }

 private:
  std::array<std::optional<Range>, 4> ranges_;
};

class SharpnessJitter final : public Transform {
 public:
  explicit SharpnessJitter(Arguments& arguments) {
    const auto range = arguments.around("sharpness", 1, {0, 1e6});
    if (!range) arguments.bad("sharpness", "a number or [low, high]");
    range_ = *range;
  }
  at::Tensor apply(const at::Tensor& image, Draws& draws) const override {
    return adjust_sharpness(image, draws.uniform(range_));
  }

 private:
  Range range_;
};

/// A fixed change that happens with probability p.
class WithProbability : public Transform {
 public:
  WithProbability(Arguments& arguments, double p) : p_(arguments.probability("p", p)) {}
  at::Tensor apply(const at::Tensor& image, Draws& draws) const final {
    return draws.uniform() < p_ ? change(image) : image;
  }

 protected:
  [[nodiscard]] virtual at::Tensor change(const at::Tensor& image) const = 0;

 private:
  double p_;
};

class RandomAdjustSharpness final : public WithProbability {
 public:
  explicit RandomAdjustSharpness(Arguments& arguments)
      : WithProbability(arguments, 0.5), factor_(arguments.number("sharpness_factor", -1)) {
    if (factor_ < 0) arguments.bad("sharpness_factor", "a number of at least 0");
  }

 protected:
  at::Tensor change(const at::Tensor& image) const override { return adjust_sharpness(image, factor_); }

 private:
  double factor_;
};

at::Tensor inverted(const at::Tensor& image) {
  return image.scalar_type() == at::kByte ? image.bitwise_not() : 1 - image;
}

class RandomInvert final : public WithProbability {
 public:
  explicit RandomInvert(Arguments& arguments) : WithProbability(arguments, 0.5) {}

 protected:
  at::Tensor change(const at::Tensor& image) const override { return inverted(image); }
};

class RandomSolarize final : public WithProbability {
 public:
  explicit RandomSolarize(Arguments& arguments)
      : WithProbability(arguments, 0.5), threshold_(arguments.number("threshold", -1)) {
    if (threshold_ < 0) arguments.bad("threshold", "a number of at least 0");
  }

 protected:
  at::Tensor change(const at::Tensor& image) const override {
    return at::where(image.ge(threshold_), inverted(image), image);
  }

 private:
  double threshold_;
};

class RandomPosterize final : public WithProbability {
 public:
  explicit RandomPosterize(Arguments& arguments)
      : WithProbability(arguments, 0.5), bits_(arguments.integer("bits", -1)) {
    if (bits_ < 0 || bits_ > 8) arguments.bad("bits", "0..8");
  }

 protected:
  at::Tensor change(const at::Tensor& image) const override {
    const std::int64_t levels = std::int64_t{1} << bits_;
    if (image.scalar_type() == at::kByte)
      return bits_ == 8 ? image : image.bitwise_and(((1 << bits_) - 1) << (8 - bits_));
    return image.mul(static_cast<double>(levels))
        .floor_()
        .clamp_(0, static_cast<double>(levels - 1))
        .mul_(1.0 / static_cast<double>(levels));
  }

 private:
  std::int64_t bits_;
};

class RandomAutocontrast final : public WithProbability {
 public:
  explicit RandomAutocontrast(Arguments& arguments) : WithProbability(arguments, 0.5) {}

 protected:
  at::Tensor change(const at::Tensor& image) const override {
    const double bound = max_value(image);
    const at::Tensor f = image.to(at::kFloat), low = f.amin({-2, -1}, true), high = f.amax({-2, -1}, true);
    const at::Tensor flat = low.eq(high);  // a flat channel stays as it is
    const at::Tensor scale = at::where(flat, at::ones_like(high), (high - low).reciprocal() * bound);
    return f.sub(at::where(flat, at::zeros_like(low), low)).mul_(scale).clamp_(0, bound).to(image.scalar_type());
  }
};

/// Three equal channels, or one.
at::Tensor grayscale(const at::Tensor& image, std::int64_t channels) {
  const at::Tensor gray = to_gray(image).to(image.scalar_type());
  std::vector<std::int64_t> sizes = gray.sizes().vec();
  sizes[sizes.size() - 3] = channels;
  return gray.expand(sizes);
}

class Grayscale final : public Transform {
 public:
  explicit Grayscale(Arguments& arguments) : channels_(arguments.integer("num_output_channels", 1)) {
    if (channels_ != 1 && channels_ != 3) arguments.bad("num_output_channels", "1 or 3");
  }
  at::Tensor apply(const at::Tensor& image, Draws&) const override { return grayscale(image, channels_); }

 private:
  std::int64_t channels_;
};

class RandomGrayscale final : public WithProbability {
 public:
  explicit RandomGrayscale(Arguments& arguments) : WithProbability(arguments, 0.1) {}

 protected:
  at::Tensor change(const at::Tensor& image) const override { return grayscale(image, image.size(-3)); }
};

class Identity final : public Transform {
 public:
  explicit Identity(Arguments&) {}
  at::Tensor apply(const at::Tensor& image, Draws&) const override { return image; }
};

template <typename T>
std::unique_ptr<Transform> make(Arguments& arguments) {
  return std::make_unique<T>(arguments);
}

}  // namespace

void add_color_transforms(TransformTable& table) {
  table["ColorJitter"] = make<ColorJitter>;
  table["Grayscale"] = make<Grayscale>;
  table["Identity"] = make<Identity>;
  table["RandomAdjustSharpness"] = make<RandomAdjustSharpness>;
  table["RandomAutocontrast"] = make<RandomAutocontrast>;
  table["RandomGrayscale"] = make<RandomGrayscale>;
  table["RandomInvert"] = make<RandomInvert>;
  table["RandomPosterize"] = make<RandomPosterize>;
  table["RandomSolarize"] = make<RandomSolarize>;
  table["SharpnessJitter"] = make<SharpnessJitter>;
}

}  // namespace lerobot::data
