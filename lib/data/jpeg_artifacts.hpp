#pragma once

#include <cstdint>

namespace lerobot::data {

/// Does to a picture what saving it as JPEG of this quality (1..100) does, without the lossless part: YCbCr, chroma at
/// half size, 8x8 cosine transform, quantisation with the scaled standard tables, and back.
///
/// In place, [channels, height, width] bytes, 1 or 3 channels. Single levels may differ from a codec's integer
/// transform.
void add_jpeg_artifacts(std::uint8_t* chw, std::int64_t channels, std::int64_t height, std::int64_t width, int quality);

}  // namespace lerobot::data
