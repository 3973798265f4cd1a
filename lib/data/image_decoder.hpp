#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lerobot::data {

/// Decodes PNG and JPEG pictures. PNG is exact; JPEG differs by single levels from libjpeg's inverse transform and
/// chroma interpolation. One thread at a time.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();

  /// What a picture must look like, and who asks.
  struct Wanted {
    std::int64_t height, width, channels;
    std::string where;
  };

  /// Writes channels * height * width bytes, channels first; 3 channels are RGB, an alpha channel is dropped.
  /// Throws: Error{kDataset} for damaged bytes, another size, or 16-bit samples.
  void decode(std::span<const std::uint8_t> encoded, const Wanted& wanted, std::uint8_t* chw);

  /// Writes height * width numbers: 16-bit gray in native units, 8-bit gray divided by 255.
  void decode_depth(std::span<const std::uint8_t> encoded, const Wanted& wanted, float* hw);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lerobot::data
