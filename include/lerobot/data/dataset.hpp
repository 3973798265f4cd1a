#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lerobot/data/batch.hpp"
#include "lerobot/data/metadata.hpp"
#include "lerobot/data/sampler.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::data {

class ImageTransforms;
class VideoDecoderCache;

enum class DepthUnit { kMillimetre, kMetre };

struct DatasetOptions {
  std::optional<std::vector<std::int64_t>> episodes = {};  ///< none: all
  std::vector<std::int64_t> exclude_episodes = {};
  /// Key -> offsets in seconds: the key becomes a window, with "<key>_is_pad" beside it.
  std::map<std::string, std::vector<double>> delta_timestamps = {};
  double tolerance_s = 1e-4;
  bool return_uint8 = false;  ///< cameras as uint8, for `to_float_image` on the device; training sets it
  DepthUnit depth_output_unit = DepthUnit::kMillimetre;
  std::shared_ptr<const ImageTransforms> image_transforms = {};  ///< none: pictures as stored
  std::shared_ptr<VideoDecoderCache> decoders = {};              ///< none: an own cache, sized by the environment
};

/// The frames of the selected episodes of a LeRobotDataset v3.0.
///
/// Numbers and encoded pictures of the selection are in memory; video is decoded on demand. Positions 0..num_frames()-1
/// follow file order, whatever the order of `episodes`. Reading is const and thread-safe.
class Dataset {
 public:
  /// Throws: Error{kConfig} for episodes or offsets that do not fit, Error{kDataset} for missing or damaged files.
  Dataset(std::shared_ptr<const Metadata> metadata, DatasetOptions options, log::Logger& logger);
  Dataset(Dataset&&) noexcept;
  ~Dataset();

  [[nodiscard]] const Metadata& metadata() const;
  [[nodiscard]] const std::shared_ptr<const Metadata>& shared_metadata() const;
  [[nodiscard]] const DatasetOptions& options() const;
  [[nodiscard]] std::int64_t num_frames() const;
  /// Selected episodes, in the order given; all of them in ascending order when none were named.
  [[nodiscard]] const std::vector<std::int64_t>& episodes() const;
  /// Position of an absolute frame number. Throws: Error{kInternal} when it is not in the selection.
  [[nodiscard]] std::int64_t position(std::int64_t absolute_index) const;
  /// A whole numeric column in file order, [num_frames, ...].
  [[nodiscard]] const at::Tensor& column(const std::string& name) const;

  /// The samples at these positions, stacked. `seeds` (empty, or one per position) decide the image transforms.
  /// Throws: Error{kDataset} with dataset index, episode and frame when a picture is missing or damaged.
  [[nodiscard]] Batch collate(std::span<const std::int64_t> positions, std::span<const std::uint64_t> seeds = {}) const;

  /// One sample.
  [[nodiscard]] Sample item(std::int64_t position, std::uint64_t seed = 0) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Checks and applies --dataset.episodes and --dataset.exclude_episodes.
/// Throws: Error{kConfig} naming negatives, duplicates or numbers out of range, and the range.
[[nodiscard]] std::vector<std::int64_t> select_episodes(const std::optional<std::vector<std::int64_t>>& episodes,
                                                        const std::vector<std::int64_t>& exclude,
                                                        std::int64_t num_episodes, log::Logger& logger);

/// The sampler over a dataset's selected episodes; `options.episodes` is filled in.
[[nodiscard]] EpisodeAwareSampler make_sampler(const Dataset& dataset, SamplerOptions options, log::Logger& logger);

}  // namespace lerobot::data
