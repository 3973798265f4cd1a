#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace lerobot::data {

/// One video file, kept open, that gives single frames by time. Decodes in the calling thread.
///
/// One thread at a time. Frames in order cost one decode each; a jump costs a seek to the key frame before.
class VideoDecoder {
 public:
  /// Throws: Error{kDataset} when the file cannot be opened or holds no video that this FFmpeg decodes.
  explicit VideoDecoder(const std::string& path);
  ~VideoDecoder();

  [[nodiscard]] const std::string& path() const;

  /// Goes to the frame nearest to `time_s` in presentation time (of two equally near: the earlier) and gives its time
  /// in seconds; nothing when the file holds no frame that can be decoded there. A frame within a quarter of the frame
  /// period is taken without looking at its neighbours.
  [[nodiscard]] std::optional<double> seek(double time_s);

  /// Size of the frame that seek() went to.
  [[nodiscard]] std::int64_t height() const;
  [[nodiscard]] std::int64_t width() const;

  /// Writes that frame as RGB, channels first: 3 * height * width bytes. Conversion by swscale, as torchcodec and PyAV
  /// do.
  void copy_rgb(std::uint8_t* chw);

  /// Writes the first plane of a 12-bit gray (or yuv) frame: height * width codes.
  /// Throws: Error{kDataset} when the frame has another depth.
  void copy_gray12(std::uint16_t* hw) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The open decoders of one rank, shared by its loader threads.
///
/// A thread borrows a decoder and gives it back; while it is out, another thread that wants the same file gets a second
/// one. At most `capacity` idle decoders stay open, the least recently used is closed first.
class VideoDecoderCache {
 public:
  /// A borrowed decoder; goes back when the lease ends.
  class Lease {
   public:
    Lease(VideoDecoderCache& cache, std::unique_ptr<VideoDecoder> decoder)
        : cache_(&cache), decoder_(std::move(decoder)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (decoder_) cache_->give_back(std::move(decoder_));
    }
    VideoDecoder& operator*() const { return *decoder_; }
    VideoDecoder* operator->() const { return decoder_.get(); }
    /// Closes the decoder instead of giving it back: after an error its state is unknown.
    void discard() { decoder_.reset(); }

   private:
    VideoDecoderCache* cache_;
    std::unique_ptr<VideoDecoder> decoder_;
  };

  /// nullopt: no bound.
  explicit VideoDecoderCache(std::optional<std::size_t> capacity);
  ~VideoDecoderCache();

  [[nodiscard]] Lease borrow(const std::string& path);
  [[nodiscard]] std::size_t num_idle() const;
  /// Decoders opened so far.
  [[nodiscard]] std::size_t num_opened() const;

 private:
  void give_back(std::unique_ptr<VideoDecoder> decoder);
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads the value of LEROBOT_VIDEO_DECODER_CACHE_SIZE: absent gives 100, "none" and "-1" no bound.
/// Throws: Error{kConfig} for other text or a number that is not positive.
[[nodiscard]] std::optional<std::size_t> parse_decoder_cache_size(const std::optional<std::string>& text);

}  // namespace lerobot::data
