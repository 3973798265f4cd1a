#include "data/jpeg_artifacts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace lerobot::data {
namespace {

constexpr int kBlock = 8;
using Block = std::array<float, kBlock * kBlock>;

// The tables of ISO/IEC 10918-1, annex K.
constexpr std::array<int, 64> kLuma{16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
                                    14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
                                    18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
                                    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};
constexpr std::array<int, 64> kChroma{17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
                                      24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
                                      99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                      99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};

Block quantisers(const std::array<int, 64>& table, int quality) {
  const int scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  Block out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(std::clamp((table[i] * scale + 50) / 100, 1, 255));
  return out;
}

/// basis[k][n]: the k-th cosine at sample n, orthonormal.
const std::array<std::array<float, kBlock>, kBlock>& basis() {
  static const auto table = [] {
    std::array<std::array<float, kBlock>, kBlock> built{};
    for (std::size_t k = 0; k < kBlock; ++k)
      for (std::size_t n = 0; n < kBlock; ++n)
        built[k][n] =
            static_cast<float>(std::cos((2.0 * static_cast<double>(n) + 1.0) * static_cast<double>(k) * M_PI / 16.0) *
                               (k == 0 ? std::sqrt(0.125) : 0.5));
    return built;
  }();
  return table;
}

/// Rows then columns, forwards or back.
Block transform(const Block& in, bool forward) {
  const auto& b = basis();
  Block half{}, out{};
  for (std::size_t row = 0; row < kBlock; ++row)
    for (std::size_t k = 0; k < kBlock; ++k)
      for (std::size_t n = 0; n < kBlock; ++n)
        half[row * kBlock + k] += in[row * kBlock + n] * (forward ? b[k][n] : b[n][k]);
  for (std::size_t k = 0; k < kBlock; ++k)
    for (std::size_t n = 0; n < kBlock; ++n)
      for (std::size_t col = 0; col < kBlock; ++col)
        out[k * kBlock + col] += half[n * kBlock + col] * (forward ? b[k][n] : b[n][k]);
  return out;
}

/// One channel, its size a multiple of eight.
struct Plane {
  std::int64_t height, width;
  std::vector<float> values;

  Plane(std::int64_t h, std::int64_t w) : height(h), width(w), values(static_cast<std::size_t>(h * w)) {}
  float& at(std::int64_t y, std::int64_t x) { return values[static_cast<std::size_t>(y * width + x)]; }
  [[nodiscard]] float clamped(std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>(std::clamp<std::int64_t>(y, 0, height - 1) * width +
                                           std::clamp<std::int64_t>(x, 0, width - 1))];
  }
};

void quantise(Plane& plane, const Block& steps) {
  for (std::int64_t y = 0; y < plane.height; y += kBlock)
    for (std::int64_t x = 0; x < plane.width; x += kBlock) {
      Block block{};
      for (std::int64_t i = 0; i < 64; ++i)
        block[static_cast<std::size_t>(i)] = plane.at(y + i / 8, x + i % 8) - 128.0F;
      block = transform(block, true);
      for (std::size_t i = 0; i < block.size(); ++i) block[i] = std::nearbyint(block[i] / steps[i]) * steps[i];
      block = transform(block, false);
      for (std::int64_t i = 0; i < 64; ++i)
        plane.at(y + i / 8, x + i % 8) =
            std::clamp(std::nearbyint(block[static_cast<std::size_t>(i)] + 128.0F), 0.0F, 255.0F);
    }
}

Plane halved(const Plane& full) {
  Plane half(full.height / 2, full.width / 2);
  for (std::int64_t y = 0; y < half.height; ++y)
    for (std::int64_t x = 0; x < half.width; ++x)
      half.at(y, x) = std::nearbyint((full.clamped(2 * y, 2 * x) + full.clamped(2 * y, 2 * x + 1) +
                                      full.clamped(2 * y + 1, 2 * x) + full.clamped(2 * y + 1, 2 * x + 1)) /
                                     4.0F);
  return half;
}

/// Triangle interpolation: three parts of the nearer sample, one of the farther, in each direction.
float doubled(const Plane& half, std::int64_t y, std::int64_t x) {
  const std::int64_t cy = y / 2, cx = x / 2, ny = cy + (y % 2 == 0 ? -1 : 1), nx = cx + (x % 2 == 0 ? -1 : 1);
  return (9 * half.clamped(cy, cx) + 3 * half.clamped(cy, nx) + 3 * half.clamped(ny, cx) + half.clamped(ny, nx)) /
         16.0F;
}

std::uint8_t to_byte(float value) { return static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0F, 255.0F)); }

constexpr std::int64_t round_up(std::int64_t size, std::int64_t to) { return (size + to - 1) / to * to; }

}  // namespace

void add_jpeg_artifacts(std::uint8_t* chw, std::int64_t channels, std::int64_t height, std::int64_t width,
                        int quality) {
  const bool color = channels == 3;
  const std::int64_t unit = color ? 2 * kBlock : kBlock, area = height * width;
  Plane luma(round_up(height, unit), round_up(width, unit));
  Plane blue(color ? luma.height : 2, color ? luma.width : 2), red = blue;
  for (std::int64_t y = 0; y < luma.height; ++y)
    for (std::int64_t x = 0; x < luma.width; ++x) {  // beyond the edge the last pixel is repeated
      const std::uint8_t* pixel = chw + std::min(y, height - 1) * width + std::min(x, width - 1);
      if (!color) {
        luma.at(y, x) = static_cast<float>(pixel[0]);
        continue;
      }
      const auto r = static_cast<float>(pixel[0]), g = static_cast<float>(pixel[area]),
                 b = static_cast<float>(pixel[2 * area]);
      luma.at(y, x) = std::nearbyint(0.299F * r + 0.587F * g + 0.114F * b);
      blue.at(y, x) = std::nearbyint(-0.168735892F * r - 0.331264108F * g + 0.5F * b + 128.0F);
      red.at(y, x) = std::nearbyint(0.5F * r - 0.418687589F * g - 0.081312411F * b + 128.0F);
    }
  quantise(luma, quantisers(kLuma, quality));
  if (!color) {
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) chw[y * width + x] = to_byte(luma.at(y, x));
    return;
  }
  Plane cb = halved(blue), cr = halved(red);
  quantise(cb, quantisers(kChroma, quality));
  quantise(cr, quantisers(kChroma, quality));
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const float l = luma.at(y, x), u = doubled(cb, y, x) - 128.0F, v = doubled(cr, y, x) - 128.0F;
      std::uint8_t* pixel = chw + y * width + x;
      pixel[0] = to_byte(l + 1.402F * v);
      pixel[area] = to_byte(l - 0.344136286F * u - 0.714136286F * v);
      pixel[2 * area] = to_byte(l + 1.772F * u);
    }
}

}  // namespace lerobot::data
