#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
#include <libavutil/log.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <string>

namespace lerobot::data::ffmpeg {

struct Closer {
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(SwsContext* p) const { sws_freeContext(p); }
};
template <typename T>
using Ptr = std::unique_ptr<T, Closer>;

/// The text of an FFmpeg error code.
std::string describe(int code);

/// FFmpeg writes to stderr by itself; what matters comes back as a code and becomes our message.
void silence();

/// A new decoder of one thread: loader threads run several side by side, which scales better than threads inside one.
/// Throws: Error{kDataset} that begins with `where`. `parameters` may be null.
Ptr<AVCodecContext> open_decoder(AVCodecID id, const AVCodecParameters* parameters, const std::string& where);

/// Converts frames to packed RGB and splits them into planes; keeps the conversion of the last format.
class RgbConverter {
 public:
  /// `sws_flags`: SWS_BILINEAR for video, as torchcodec and PyAV use.
  explicit RgbConverter(int sws_flags) : flags_(sws_flags) {}
  /// Writes 3 * height * width bytes, channels first.
  void convert(const AVFrame& frame, std::uint8_t* chw);

 private:
  int flags_;
  int width_ = 0, height_ = 0, format_ = -1, colorspace_ = -1, range_ = -1;
  Ptr<SwsContext> scale_;
  std::unique_ptr<std::uint8_t[]> packed_;
};

}  // namespace lerobot::data::ffmpeg
