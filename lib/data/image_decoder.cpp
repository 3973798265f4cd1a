#include "data/image_decoder.hpp"

#include <algorithm>
#include <cstring>

#include "data/ffmpeg.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

bool starts_with(std::span<const std::uint8_t> bytes, std::initializer_list<std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

}  // namespace

struct ImageDecoder::State {
  ffmpeg::Ptr<AVCodecContext> png, jpeg;
  ffmpeg::Ptr<AVPacket> packet{av_packet_alloc()};
  ffmpeg::Ptr<AVFrame> frame{av_frame_alloc()};
  ffmpeg::RgbConverter rgb{SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT};

  AVCodecContext& codec_for(std::span<const std::uint8_t> encoded, const std::string& where) {
    const bool is_png = starts_with(encoded, {0x89, 'P', 'N', 'G'});
    if (!is_png && !starts_with(encoded, {0xFF, 0xD8}))
      fail(ErrorKind::kDataset, "{}: {} bytes that are neither PNG nor JPEG.", where, encoded.size());
    ffmpeg::Ptr<AVCodecContext>& codec = is_png ? png : jpeg;
    if (!codec) codec = ffmpeg::open_decoder(is_png ? AV_CODEC_ID_PNG : AV_CODEC_ID_MJPEG, nullptr, where);
    return *codec;
  }

  /// Decodes into `frame` and checks its size.
  void run(std::span<const std::uint8_t> encoded, const Wanted& wanted) {
    AVCodecContext& codec = codec_for(encoded, wanted.where);
    int code = av_new_packet(packet.get(), static_cast<int>(std::min<std::size_t>(encoded.size(), 1U << 30)));
    if (code >= 0) {
      std::memcpy(packet->data, encoded.data(), static_cast<std::size_t>(packet->size));
      packet->flags |= AV_PKT_FLAG_KEY;  // else the PNG decoder adds the picture before to this one
      code = avcodec_send_packet(&codec, packet.get());
      av_packet_unref(packet.get());
    }
    if (code >= 0) code = avcodec_receive_frame(&codec, frame.get());
    avcodec_flush_buffers(&codec);
    if (code < 0 || frame->decode_error_flags != 0 || (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0)
      fail(ErrorKind::kDataset, "{}: the picture is damaged ({}).", wanted.where,
           code < 0 ? ffmpeg::describe(code) : "corrupt data");
    if (frame->height != wanted.height || frame->width != wanted.width)
      fail(ErrorKind::kDataset, "{}: the picture is {}x{} (height x width); meta/info.json says {}x{}.", wanted.where,
           frame->height, frame->width, wanted.height, wanted.width);
  }

  [[nodiscard]] int sample_bits() const {
    return av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame->format))->comp[0].depth;
  }
};

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) {}
ImageDecoder::~ImageDecoder() = default;

void ImageDecoder::decode(std::span<const std::uint8_t> encoded, const Wanted& wanted, std::uint8_t* chw) {
  state_->run(encoded, wanted);
  const AVFrame& frame = *state_->frame;
  if (state_->sample_bits() > 8)
    fail(ErrorKind::kDataset, "{}: the picture has {} bits per sample, but the feature is not marked as a depth map.",
         wanted.where, state_->sample_bits());
  if (wanted.channels == 3) return state_->rgb.convert(frame, chw);
  if (wanted.channels != 1 || frame.format != AV_PIX_FMT_GRAY8)
    fail(ErrorKind::kDataset, "{}: the picture has pixel format {}; {} channels cannot be made of it.", wanted.where,
         av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format)), wanted.channels);
  for (int y = 0; y < frame.height; ++y)
    std::memcpy(chw + static_cast<std::ptrdiff_t>(y) * frame.width,
                frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0],
                static_cast<std::size_t>(frame.width));
}

void ImageDecoder::decode_depth(std::span<const std::uint8_t> encoded, const Wanted& wanted, float* hw) {
  state_->run(encoded, wanted);
  const AVFrame& frame = *state_->frame;
  const bool wide = frame.format == AV_PIX_FMT_GRAY16BE;
  if (!wide && frame.format != AV_PIX_FMT_GRAY8)
    fail(ErrorKind::kDataset, "{}: a depth map of pixel format {}; expected 16-bit or 8-bit gray.", wanted.where,
         av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format)));
  for (int y = 0; y < frame.height; ++y) {
    const std::uint8_t* row = frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0];
    for (int x = 0; x < frame.width; ++x)
      *hw++ = wide ? static_cast<float>(row[2 * x] << 8 | row[2 * x + 1]) : static_cast<float>(row[x]) / 255.0F;
  }
}

}  // namespace lerobot::data
