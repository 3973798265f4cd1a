#include "lerobot/data/video.hpp"

#include <charconv>
#include <cmath>
#include <list>
#include <mutex>
#include <vector>

#include "data/ffmpeg.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {

struct VideoDecoder::State {
  std::string path;
  ffmpeg::Ptr<AVFormatContext> format;
  ffmpeg::Ptr<AVCodecContext> codec;
  AVStream* stream = nullptr;
  ffmpeg::Ptr<AVPacket> packet{av_packet_alloc()};
  ffmpeg::Ptr<AVFrame> current{av_frame_alloc()}, previous{av_frame_alloc()}, incoming{av_frame_alloc()};
  bool has_current = false, has_previous = false;
  const AVFrame* chosen = nullptr;
  double time_base = 0;
  double near = 0;  // a frame this close needs no look at its neighbours
  ffmpeg::RgbConverter rgb{SWS_BILINEAR};

  [[nodiscard]] double time_of(const AVFrame& frame) const {
    return static_cast<double>(frame.best_effort_timestamp) * time_base;
  }

  [[noreturn]] void damaged(const std::string& what) const {
    fail(ErrorKind::kDataset, "{}: the video is damaged ({}). Copy the file again.", path, what);
  }

  void open() {
    ffmpeg::silence();
    AVFormatContext* raw = nullptr;
    int code = avformat_open_input(&raw, path.c_str(), nullptr, nullptr);
    if (code < 0) fail(ErrorKind::kDataset, "{}: the video cannot be opened: {}.", path, ffmpeg::describe(code));
    format.reset(raw);
    int index = av_find_best_stream(raw, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    // An mp4 tells all in its header; asking for more would decode frames at every opening.
    if (index < 0 || raw->streams[index]->codecpar->width == 0) {
      code = avformat_find_stream_info(raw, nullptr);
      index = code < 0 ? code : av_find_best_stream(raw, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    }
    if (index < 0) fail(ErrorKind::kDataset, "{}: there is no video stream: {}.", path, ffmpeg::describe(index));
    stream = raw->streams[index];
    for (unsigned i = 0; i < raw->nb_streams; ++i)
      if (raw->streams[i] != stream) raw->streams[i]->discard = AVDISCARD_ALL;
    codec = ffmpeg::open_decoder(stream->codecpar->codec_id, stream->codecpar, path);
    codec->pkt_timebase = stream->time_base;
    time_base = av_q2d(stream->time_base);
    const double rate = av_q2d(stream->avg_frame_rate);
    near = std::isfinite(rate) && rate > 0 ? 0.25 / rate : 0;
  }

  /// Decodes one more frame into `current`, the former one into `previous`. False at the end of the file.
  bool advance() {
    for (;;) {
      int code = avcodec_receive_frame(codec.get(), incoming.get());
      if (code >= 0) {
        if (incoming->decode_error_flags != 0 || (incoming->flags & AV_FRAME_FLAG_CORRUPT) != 0)
          damaged("a frame does not decode");
        std::swap(previous, current);
        std::swap(current, incoming);
        av_frame_unref(incoming.get());
        has_previous = has_current;
        has_current = true;
        return true;
      }
      if (code == AVERROR_EOF) return false;
      if (code != AVERROR(EAGAIN)) damaged(ffmpeg::describe(code));
      do {
        av_packet_unref(packet.get());
        code = av_read_frame(format.get(), packet.get());
      } while (code >= 0 && packet->stream_index != stream->index);
      if (code == AVERROR_EOF) {
        code = avcodec_send_packet(codec.get(), nullptr);  // the decoder gives what it holds back
      } else if (code >= 0) {
        if ((packet->flags & AV_PKT_FLAG_CORRUPT) != 0) damaged("a packet ends early");
        code = avcodec_send_packet(codec.get(), packet.get());
      }
      if (code < 0 && code != AVERROR_EOF) damaged(ffmpeg::describe(code));
    }
  }

  void go_to(std::int64_t timestamp) {
    const int code = av_seek_frame(format.get(), stream->index, timestamp, AVSEEK_FLAG_BACKWARD);
    if (code < 0)
      damaged("no seek to " + std::to_string(static_cast<double>(timestamp) * time_base) +
              " s: " + ffmpeg::describe(code));
    avcodec_flush_buffers(codec.get());
    has_current = has_previous = false;
  }

  /// Decoding timestamp of the key frame at or before `timestamp`; the start when there is none.
  [[nodiscard]] std::int64_t key_frame(std::int64_t timestamp) const {
    const int entry = av_index_search_timestamp(stream, timestamp, AVSEEK_FLAG_BACKWARD);
    const AVIndexEntry* found = entry < 0 ? nullptr : avformat_index_get_entry(stream, entry);
    return found != nullptr ? found->timestamp : INT64_MIN;
  }

  /// Makes `current` a frame from which decoding forward reaches `time_s`.
  void approach(double time_s) {
    const auto wanted = static_cast<std::int64_t>(std::floor((time_s + near) / time_base));
    std::int64_t key = key_frame(wanted);
    if (has_current) {
      const std::int64_t at = current->best_effort_timestamp;
      if (has_previous && previous->best_effort_timestamp <= wanted && wanted <= at) return;
      if (at <= wanted && key <= at) return;
    }
    // Frames may be shown later than they are stored, so the first one after a key frame can lie behind the wanted
    // time.
    for (;;) {
      const bool first = key == INT64_MIN;
      go_to(first ? std::min<std::int64_t>(0, stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time) : key);
      if (!advance() || first || current->best_effort_timestamp <= wanted) return;
      const std::int64_t before = key_frame(key - 1);
      key = before < key ? before : INT64_MIN;
    }
  }
};

VideoDecoder::VideoDecoder(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->open();
}
VideoDecoder::~VideoDecoder() = default;

const std::string& VideoDecoder::path() const { return state_->path; }

std::optional<double> VideoDecoder::seek(double time_s) {
  State& s = *state_;
  s.chosen = nullptr;
  if (!std::isfinite(time_s) || std::abs(time_s) > 1e9) return std::nullopt;
  s.approach(time_s);
  while (s.has_current && s.time_of(*s.current) < time_s - s.near)
    if (!s.advance()) break;
  if (!s.has_current) return std::nullopt;
  s.chosen = s.current.get();
  if (s.has_previous && std::abs(s.time_of(*s.previous) - time_s) <= std::abs(s.time_of(*s.current) - time_s))
    s.chosen = s.previous.get();
  return s.time_of(*s.chosen);
}

std::int64_t VideoDecoder::height() const { return state_->chosen->height; }
std::int64_t VideoDecoder::width() const { return state_->chosen->width; }

void VideoDecoder::copy_rgb(std::uint8_t* chw) { state_->rgb.convert(*state_->chosen, chw); }

void VideoDecoder::copy_gray12(std::uint16_t* hw) const {
  const AVFrame& frame = *state_->chosen;
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool big_endian = (format->flags & AV_PIX_FMT_FLAG_BE) != 0;
  if (format->comp[0].depth != 12 || format->comp[0].step != 2 || format->comp[0].shift != 0 || big_endian ||
      (format->flags & AV_PIX_FMT_FLAG_RGB) != 0)
    fail(ErrorKind::kDataset, "{}: a depth video of pixel format {}; expected 12-bit gray.", state_->path,
         format->name);
  for (int y = 0; y < frame.height; ++y) {
    const std::uint8_t* row = frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0];
    for (int x = 0; x < frame.width; ++x) *hw++ = static_cast<std::uint16_t>(row[2 * x] | row[2 * x + 1] << 8);
  }
}

struct VideoDecoderCache::State {
  std::optional<std::size_t> capacity;
  mutable std::mutex mutex;
  std::list<std::unique_ptr<VideoDecoder>> idle;  // most recently used first
  std::size_t opened = 0;
};

VideoDecoderCache::VideoDecoderCache(std::optional<std::size_t> capacity) : state_(std::make_unique<State>()) {
  state_->capacity = capacity;
}
VideoDecoderCache::~VideoDecoderCache() = default;

VideoDecoderCache::Lease VideoDecoderCache::borrow(const std::string& path) {
  {
    const std::lock_guard lock(state_->mutex);
    for (auto it = state_->idle.begin(); it != state_->idle.end(); ++it) {
      if ((*it)->path() != path) continue;
      std::unique_ptr<VideoDecoder> found = std::move(*it);
      state_->idle.erase(it);
      return {*this, std::move(found)};
    }
    ++state_->opened;
  }
  return {*this, std::make_unique<VideoDecoder>(path)};  // opened outside the lock: it reads the file's header
}

void VideoDecoderCache::give_back(std::unique_ptr<VideoDecoder> decoder) {
  std::vector<std::unique_ptr<VideoDecoder>> closing;  // closed outside the lock
  const std::lock_guard lock(state_->mutex);
  state_->idle.push_front(std::move(decoder));
  while (state_->capacity && state_->idle.size() > *state_->capacity) {
    closing.push_back(std::move(state_->idle.back()));
    state_->idle.pop_back();
  }
}

std::size_t VideoDecoderCache::num_idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->idle.size();
}

std::size_t VideoDecoderCache::num_opened() const {
  const std::lock_guard lock(state_->mutex);
  return state_->opened;
}

std::optional<std::size_t> parse_decoder_cache_size(const std::optional<std::string>& text) {
  constexpr std::size_t kDefault = 100;
  if (!text) return kDefault;
  if (*text == "none" || *text == "-1") return std::nullopt;
  std::size_t size = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, size);
  if (parsed.ec != std::errc() || parsed.ptr != end || size == 0)
    fail(ErrorKind::kConfig, "LEROBOT_VIDEO_DECODER_CACHE_SIZE: got \"{}\"; expected a number above 0, none or -1.",
         *text);
  return size;
}

}  // namespace lerobot::data
