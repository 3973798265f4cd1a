#include "data/cameras.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

#include "data/image_decoder.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/data/video.hpp"

namespace lerobot::data {
namespace {

constexpr float kMillimetresPerMetre = 1000.0F;

/// C, H, W of a camera feature, which is written as height, width, channels.
std::vector<std::int64_t> chw(const Feature& feature) {
  const std::int64_t channels = feature.is_depth ? 1 : feature.shape[2];
  if (channels != 1 && channels != 3)
    fail(ErrorKind::kDataset, "camera \"{}\" has {} channels; expected 1 or 3.", feature.name, channels);
  return {channels, feature.shape[0], feature.shape[1]};
}

std::size_t frame_bytes(const Camera& camera) {
  std::size_t bytes = camera.type() == at::kFloat ? sizeof(float) : 1;
  for (const std::int64_t size : camera.frame_sizes()) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

class ImageCamera final : public Camera {
 public:
  ImageCamera(std::shared_ptr<const Table> table, const Feature& feature, const DatasetOptions& options)
      : table_(std::move(table)),
        images_(table_->columns.images.at(feature.name)),
        name_(feature.name),
        depth_(feature.is_depth),
        sizes_(chw(feature)) {
    const auto unit = depth_ && feature.info.is_object() ? feature.info.find("depth_unit") : feature.info.end();
    if (unit != feature.info.end() && unit->is_string()) {
      const bool metres = *unit == "m";
      if (!metres && *unit != "mm")
        fail(ErrorKind::kDataset, "camera \"{}\": depth_unit is {}; expected m or mm.", name_, unit->dump());
      const bool want_metres = options.depth_output_unit == DepthUnit::kMetre;
      if (metres != want_metres) factor_ = metres ? kMillimetresPerMetre : 1.0F / kMillimetresPerMetre;
    }
  }

  [[nodiscard]] at::ScalarType type() const override { return depth_ ? at::kFloat : at::kByte; }
  [[nodiscard]] std::vector<std::int64_t> frame_sizes() const override { return sizes_; }

  void read(std::span<const std::int64_t> rows, void* out) const override {
    std::unique_ptr<ImageDecoder> decoder = take();
    auto* to = static_cast<std::uint8_t*>(out);
    const std::size_t bytes = frame_bytes(*this);
    for (std::size_t i = 0; i < rows.size(); ++i, to += bytes) {
      if (i > 0 && rows[i] == rows[i - 1])
        std::memcpy(to, to - bytes, bytes);  // past the end of an episode
      else
        decode(*decoder, rows[i], to);
    }
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(decoder));
  }

 private:
  void decode(ImageDecoder& decoder, std::int64_t row, std::uint8_t* to) const {
    const ImageDecoder::Wanted wanted{sizes_[1], sizes_[2], sizes_[0],
                                      fmt::format("camera \"{}\", {}", name_, describe_row(*table_, row))};
    if (!depth_) return decoder.decode(images_.row(row), wanted, to);
    auto* depth = reinterpret_cast<float*>(to);
    decoder.decode_depth(images_.row(row), wanted, depth);
    if (factor_ == 1.0F) return;
    for (std::int64_t i = 0; i < sizes_[1] * sizes_[2]; ++i)
      depth[i] = factor_ > 1.0F ? depth[i] * kMillimetresPerMetre : depth[i] / kMillimetresPerMetre;
  }

  [[nodiscard]] std::unique_ptr<ImageDecoder> take() const {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<ImageDecoder>();
    std::unique_ptr<ImageDecoder> decoder = std::move(idle_.back());
    idle_.pop_back();
    return decoder;
  }

  std::shared_ptr<const Table> table_;
  const ImageColumn& images_;
  std::string name_;
  bool depth_;
  std::vector<std::int64_t> sizes_;
  float factor_ = 1.0F;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ImageDecoder>> idle_;
};

/// How a depth video's 12-bit codes were made; the defaults are the writer's.
struct DepthCodes {
  double depth_min = 0.01, depth_max = 10.0, shift = 3.5;
  bool use_log = true, millimetres = true;

  DepthCodes(const Feature& feature, DepthUnit unit) : millimetres(unit == DepthUnit::kMillimetre) {
    const auto number = [&](const char* key, double& value) {
      if (feature.info.is_object() && feature.info.contains(key) && feature.info[key].is_number())
        value = feature.info[key].get<double>();
    };
    number("video.depth_min", depth_min);
    number("video.depth_max", depth_max);
    number("video.shift", shift);
    if (feature.info.is_object() && feature.info.contains("video.use_log") &&
        feature.info["video.use_log"].is_boolean())
      use_log = feature.info["video.use_log"].get<bool>();
    if (!(depth_min < depth_max) || (use_log && !(depth_min + shift > 0)))
      fail(ErrorKind::kDataset, "camera \"{}\": depth_min={}, depth_max={}, shift={} do not make a scale.",
           feature.name, depth_min, depth_max, shift);
  }

  void decode(std::span<const std::uint16_t> codes, float* out) const {
    const double low = use_log ? std::log(depth_min + shift) : depth_min;
    const double high = use_log ? std::log(depth_max + shift) : depth_max;
    const auto step = static_cast<float>((high - low) / 4095.0), offset = static_cast<float>(low);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      float depth = static_cast<float>(codes[i]) * step + offset;
      if (use_log) depth = std::exp(depth) - static_cast<float>(shift);
      depth = std::clamp(depth, static_cast<float>(depth_min), static_cast<float>(depth_max));
      out[i] = millimetres ? std::clamp(std::nearbyint(depth * kMillimetresPerMetre), 0.0F, 65535.0F) : depth;
    }
  }
};

class VideoCamera final : public Camera {
 public:
  VideoCamera(std::shared_ptr<const Table> table, const Feature& feature, const DatasetOptions& options,
              std::shared_ptr<VideoDecoderCache> decoders)
      : table_(std::move(table)),
        name_(feature.name),
        depth_(feature.is_depth),
        sizes_(chw(feature)),
        tolerance_s_(options.tolerance_s),
        decoders_(std::move(decoders)) {
    if (depth_)
      codes_.emplace(feature, options.depth_output_unit);
    else if (sizes_[0] != 3)
      fail(ErrorKind::kDataset, "camera \"{}\": a video of {} channels; expected 3.", name_, sizes_[0]);
    const Metadata& metadata = *table_->metadata;
    const std::vector<EpisodeVideo>& videos = metadata.videos.at(name_);
    file_of_episode_.resize(videos.size(), 0);
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> known;
    const auto& columns = table_->columns;
    episode_of_row_ = columns.numeric.at("episode_index").const_data_ptr<std::int64_t>();
    timestamp_ = columns.numeric.at("timestamp").const_data_ptr<float>();
    for (std::int64_t row = 0; row < columns.num_rows; ++row) {
      const auto episode = static_cast<std::size_t>(episode_of_row_[row]);
      if (row > 0 && episode_of_row_[row - 1] == episode_of_row_[row]) continue;
      const EpisodeVideo& video = videos[episode];
      const auto [at, added] = known.try_emplace({video.chunk_index, video.file_index}, files_.size());
      if (added) {
        files_.push_back(
            (metadata.root / metadata.info.video_file(name_, video.chunk_index, video.file_index)).string());
        if (!std::filesystem::is_regular_file(files_.back()))
          fail(ErrorKind::kDataset, "dataset {}: the video {} of episode {} is missing. Copy the dataset again.",
               metadata.root.string(), files_.back(), episode);
      }
      file_of_episode_[episode] = at->second;
    }
  }

  [[nodiscard]] at::ScalarType type() const override { return depth_ ? at::kFloat : at::kByte; }
  [[nodiscard]] std::vector<std::int64_t> frame_sizes() const override { return sizes_; }

  void read(std::span<const std::int64_t> rows, void* out) const override {
    // In the order of files and times, so that neighbours cost one decode and a file is taken up once.
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto place = [&](std::size_t i) { return std::pair{file(rows[i]), time(rows[i])}; };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    const std::size_t bytes = frame_bytes(*this);
    std::optional<VideoDecoderCache::Lease> lease;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int64_t row = rows[order[i]];
      auto* to = static_cast<std::uint8_t*>(out) + order[i] * bytes;
      if (i > 0 && rows[order[i - 1]] == row) {
        std::memcpy(to, static_cast<std::uint8_t*>(out) + order[i - 1] * bytes, bytes);
        continue;
      }
      try {
        if (!lease || (*lease)->path() != files_[file(row)]) {
          lease.reset();
          lease.emplace(decoders_->borrow(files_[file(row)]));
        }
        decode(**lease, row, to);
      } catch (const Error& e) {
        if (lease) lease->discard();
        fail(e.kind(), "camera \"{}\", {}: {}", name_, describe_row(*table_, row), e.what());
      }
    }
  }

 private:
  [[nodiscard]] std::size_t file(std::int64_t row) const {
    return file_of_episode_[static_cast<std::size_t>(episode_of_row_[row])];
  }
  [[nodiscard]] double time(std::int64_t row) const {
    const auto episode = static_cast<std::size_t>(episode_of_row_[row]);
    return table_->metadata->videos.at(name_)[episode].from_timestamp + static_cast<double>(timestamp_[row]);
  }

  void decode(VideoDecoder& decoder, std::int64_t row, std::uint8_t* to) const {
    const double wanted = time(row);
    const std::optional<double> found = decoder.seek(wanted);
    // In double: compared in float32, offsets of thousands of seconds would exceed the tolerance by rounding alone.
    if (!found || !(std::abs(*found - wanted) <= tolerance_s_))
      fail(ErrorKind::kDataset,
           "no frame at {:.6f} s in {}; the nearest is {}, tolerance_s is {}. The recording is out of step or cut "
           "short: leave the "
           "episode out with --dataset.exclude_episodes='[{}]', or raise --tolerance_s.",
           wanted, decoder.path(), found ? fmt::format("at {:.6f} s", *found) : "missing (none could be decoded)",
           tolerance_s_, episode_of_row_[row]);
    if (decoder.height() != sizes_[1] || decoder.width() != sizes_[2])
      fail(ErrorKind::kDataset, "the video {} is {}x{} (height x width); meta/info.json says {}x{}.", decoder.path(),
           decoder.height(), decoder.width(), sizes_[1], sizes_[2]);
    if (!depth_) return decoder.copy_rgb(to);
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(sizes_[1] * sizes_[2]));
    decoder.copy_gray12(codes.data());
    codes_->decode(codes, reinterpret_cast<float*>(to));
  }

  std::shared_ptr<const Table> table_;
  std::string name_;
  bool depth_;
  std::vector<std::int64_t> sizes_;
  double tolerance_s_;
  std::shared_ptr<VideoDecoderCache> decoders_;
  std::optional<DepthCodes> codes_;
  std::vector<std::string> files_;
  std::vector<std::size_t> file_of_episode_;
  const std::int64_t* episode_of_row_ = nullptr;
  const float* timestamp_ = nullptr;
};

}  // namespace

std::string describe_row(const Table& table, std::int64_t row) {
  const auto value = [&](const char* name) {
    return table.columns.numeric.at(name).const_data_ptr<std::int64_t>()[row];
  };
  return fmt::format("dataset index {} (episode {}, frame {})", value("index"), value("episode_index"),
                     value("frame_index"));
}

std::unique_ptr<Camera> make_image_camera(std::shared_ptr<const Table> table, const Feature& feature,
                                          const DatasetOptions& options) {
  return std::make_unique<ImageCamera>(std::move(table), feature, options);
}

std::unique_ptr<Camera> make_video_camera(std::shared_ptr<const Table> table, const Feature& feature,
                                          const DatasetOptions& options, std::shared_ptr<VideoDecoderCache> decoders) {
  return std::make_unique<VideoCamera>(std::move(table), feature, options, std::move(decoders));
}

}  // namespace lerobot::data
