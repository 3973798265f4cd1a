#include "data/ffmpeg.hpp"

#include "lerobot/core/error.hpp"

namespace lerobot::data::ffmpeg {

std::string describe(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof(text));
  return text;
}

void silence() {
  static const bool done = (av_log_set_level(AV_LOG_QUIET), true);
  static_cast<void>(done);
}

Ptr<AVCodecContext> open_decoder(AVCodecID id, const AVCodecParameters* parameters, const std::string& where) {
  silence();
  const AVCodec* codec = avcodec_find_decoder(id);
  if (codec == nullptr)
    fail(ErrorKind::kDataset, "{}: this FFmpeg has no decoder for {}. Install one that has (AV1 needs dav1d).", where,
         avcodec_get_name(id));
  Ptr<AVCodecContext> context(avcodec_alloc_context3(codec));
  if (!context) throw std::bad_alloc();
  int code = parameters != nullptr ? avcodec_parameters_to_context(context.get(), parameters) : 0;
  context->thread_count = 1;
  if (code >= 0) code = avcodec_open2(context.get(), codec, nullptr);
  if (code < 0) fail(ErrorKind::kDataset, "{}: the {} decoder does not open: {}.", where, codec->name, describe(code));
  return context;
}

void RgbConverter::convert(const AVFrame& frame, std::uint8_t* chw) {
  const int width = frame.width, height = frame.height;
  if (width != width_ || height != height_ || frame.format != format_ || frame.colorspace != colorspace_ ||
      frame.color_range != range_) {
    scale_.reset(sws_getContext(width, height, static_cast<AVPixelFormat>(frame.format), width, height,
                                AV_PIX_FMT_RGB24, flags_, nullptr, nullptr, nullptr));
    if (!scale_)
      fail(ErrorKind::kDataset, "pictures of pixel format {} cannot be converted to RGB.",
           av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format)));
    int *inverse = nullptr, *table = nullptr, source_range = 0, range = 0, brightness = 0, contrast = 0, saturation = 0;
    // Formats without YUV have no details to set.
    if (sws_getColorspaceDetails(scale_.get(), &inverse, &source_range, &table, &range, &brightness, &contrast,
                                 &saturation) >= 0) {
      if (frame.color_range != AVCOL_RANGE_UNSPECIFIED) source_range = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
      sws_setColorspaceDetails(scale_.get(), sws_getCoefficients(frame.colorspace), source_range, table, range,
                               brightness, contrast, saturation);
    }
    width_ = width;
    height_ = height;
    format_ = frame.format;
    colorspace_ = frame.colorspace;
    range_ = frame.color_range;
    packed_ =
        std::make_unique<std::uint8_t[]>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3 + 64);
  }
  std::uint8_t* planes[4] = {packed_.get()};
  const int strides[4] = {3 * width};
  sws_scale(scale_.get(), frame.data, frame.linesize, 0, height, planes, strides);
  const std::size_t area = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  const std::uint8_t* from = packed_.get();
  std::uint8_t *red = chw, *green = chw + area, *blue = chw + 2 * area;
  for (std::size_t i = 0; i < area; ++i, from += 3) {
    red[i] = from[0];
    green[i] = from[1];
    blue[i] = from[2];
  }
}

}  // namespace lerobot::data::ffmpeg
