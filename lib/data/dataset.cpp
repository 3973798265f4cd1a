#include "lerobot/data/dataset.hpp"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "data/cameras.hpp"
#include "data/columns.hpp"
#include "data/windows.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/data/image_transforms.hpp"
#include "lerobot/data/locate.hpp"
#include "lerobot/data/video.hpp"

namespace lerobot::data {
namespace {

/// How one numeric column goes into a batch.
struct NumericPlan {
  std::string name;
  const char* table = nullptr;
  std::size_t row_bytes = 0;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> row_sizes;
  Window window;
};

struct CameraPlan {
  std::string name;
  std::unique_ptr<Camera> camera;
  Window window;
  bool transformed = false;
  bool as_float = false;
};

template <typename T>
std::string listed(const std::vector<T>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

}  // namespace

struct Dataset::State {
  std::shared_ptr<const Table> table;
  DatasetOptions options;
  std::vector<std::int64_t> episodes;            // as selected
  std::vector<std::int64_t> row_begin, row_end;  // by place in file order
  std::vector<std::int64_t> first_index;         // absolute number of row_begin
  std::vector<std::int64_t> place;               // episode_index -> place in file order, -1: not selected
  const std::int64_t* episode_of_row = nullptr;
  const std::int64_t* task_of_row = nullptr;
  std::vector<NumericPlan> numeric;
  std::vector<CameraPlan> cameras;
  std::shared_ptr<VideoDecoderCache> decoders;

  [[nodiscard]] RowInEpisode locate(std::int64_t position) const {
    if (position < 0 || position >= table->columns.num_rows)
      fail(ErrorKind::kInternal, "dataset: position {} is not among 0..{}.", position, table->columns.num_rows - 1);
    const auto at = static_cast<std::size_t>(place[static_cast<std::size_t>(episode_of_row[position])]);
    return {position, row_begin[at], row_end[at]};
  }

  void place_episodes(const std::vector<std::int64_t>& in_file_order) {
    const std::vector<Episode>& all = table->metadata->episodes;
    place.assign(all.size(), -1);
    std::int64_t row = 0;
    for (const std::int64_t number : in_file_order) {
      const Episode& episode = all[static_cast<std::size_t>(number)];
      place[static_cast<std::size_t>(number)] = static_cast<std::int64_t>(row_begin.size());
      row_begin.push_back(row);
      row_end.push_back(row += episode.to - episode.from);
      first_index.push_back(episode.from);
    }
  }

  [[nodiscard]] Window window_of(const std::string& key) const {
    const auto it = options.delta_timestamps.find(key);
    if (it == options.delta_timestamps.end()) return {};
    return make_window(key, it->second, table->metadata->info.fps, options.tolerance_s);
  }

  void plan(const Feature& feature) {
    if (feature.is_camera()) {
      const bool video = feature.kind == ColumnKind::kVideo;
      CameraPlan camera{
          feature.name,
          video ? make_video_camera(table, feature, options, decoders) : make_image_camera(table, feature, options),
          window_of(feature.name)};
      camera.transformed = options.image_transforms && !feature.is_depth;
      // LeRobot (Python) gives pictures from parquet to the transforms as float, video frames as uint8.
      camera.as_float = camera.camera->type() == at::kByte && (!options.return_uint8 || (camera.transformed && !video));
      cameras.push_back(std::move(camera));
      return;
    }
    const auto it = table->columns.numeric.find(feature.name);
    if (it == table->columns.numeric.end()) return;
    const at::Tensor& values = it->second;
    NumericPlan column;
    column.name = feature.name;
    column.table = static_cast<const char*>(values.const_data_ptr());
    column.type = values.scalar_type();
    column.row_sizes = values.sizes().slice(1).vec();
    column.row_bytes = static_cast<std::size_t>(values.element_size());
    for (const std::int64_t size : column.row_sizes) column.row_bytes *= static_cast<std::size_t>(size);
    column.window = window_of(feature.name);
    numeric.push_back(std::move(column));
  }

  [[nodiscard]] std::vector<std::int64_t> sizes(std::size_t batch, const Window& window,
                                                const std::vector<std::int64_t>& row_sizes) const {
    std::vector<std::int64_t> out{static_cast<std::int64_t>(batch)};
    if (!window.deltas.empty()) out.push_back(window.length());
    out.insert(out.end(), row_sizes.begin(), row_sizes.end());
    return out;
  }

  void add_padding(Batch& batch, const std::string& key, const Window& window,
                   std::span<const RowInEpisode> rows) const {
    if (window.deltas.empty()) return;
    at::Tensor padding = at::empty({static_cast<std::int64_t>(rows.size()), window.length()}, at::kBool);
    bool* out = padding.data_ptr<bool>();
    for (const RowInEpisode& row : rows) {
      window_padding(window, row, out);
      out += window.length();
    }
    batch.tensors.emplace(key + "_is_pad", std::move(padding));
  }

  [[nodiscard]] at::Tensor pictures(const CameraPlan& plan, std::span<const RowInEpisode> rows,
                                    std::span<const std::uint64_t> seeds) const {
    std::vector<std::int64_t> frames(rows.size() * static_cast<std::size_t>(plan.window.length()));
    for (std::size_t i = 0; i < rows.size(); ++i)
      window_rows(plan.window, rows[i], frames.data() + i * static_cast<std::size_t>(plan.window.length()));
    at::Tensor out = at::empty(sizes(rows.size(), plan.window, plan.camera->frame_sizes()), plan.camera->type());
    plan.camera->read(frames, out.mutable_data_ptr());
    if (plan.as_float) out = to_float_image(out);
    if (!plan.transformed) return out;
    std::vector<at::Tensor> samples;
    for (std::size_t i = 0; i < rows.size(); ++i)
      samples.push_back(options.image_transforms->apply(out.select(0, static_cast<std::int64_t>(i)),
                                                        seeds.empty() ? 0 : seeds[i], plan.name));
    return at::stack(samples);
  }
};

Dataset::Dataset(std::shared_ptr<const Metadata> metadata, DatasetOptions options, log::Logger& logger)
    : state_(std::make_unique<State>()) {
  const DatasetInfo& info = metadata->info;
  for (const auto& [key, deltas] : options.delta_timestamps) {
    const Feature* feature = info.find(key);
    if (feature == nullptr || feature->kind == ColumnKind::kString || feature->kind == ColumnKind::kLanguage ||
        deltas.empty())
      fail(ErrorKind::kConfig,
           "delta_timestamps: \"{}\" is no numeric or camera feature of dataset {}, or has no offset.", key,
           metadata->root.string());
    (void)make_window(key, deltas, info.fps, options.tolerance_s);  // before any file is read
  }
  state_->episodes = select_episodes(options.episodes, options.exclude_episodes,
                                     static_cast<std::int64_t>(metadata->episodes.size()), logger);
  std::vector<std::int64_t> in_file_order = state_->episodes;
  std::sort(in_file_order.begin(), in_file_order.end());

  auto table = std::make_shared<Table>();
  table->columns = read_columns(*metadata, in_file_order);
  table->metadata = std::move(metadata);
  state_->table = std::move(table);
  state_->options = std::move(options);
  state_->decoders = state_->options.decoders;
  if (!state_->decoders)
    state_->decoders =
        std::make_shared<VideoDecoderCache>(parse_decoder_cache_size(read_env("LEROBOT_VIDEO_DECODER_CACHE_SIZE")));
  state_->place_episodes(in_file_order);
  state_->episode_of_row = column("episode_index").const_data_ptr<std::int64_t>();
  state_->task_of_row = column("task_index").const_data_ptr<std::int64_t>();
  for (const Feature& feature : info.features) state_->plan(feature);
}

Dataset::Dataset(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

const Metadata& Dataset::metadata() const { return *state_->table->metadata; }
const std::shared_ptr<const Metadata>& Dataset::shared_metadata() const { return state_->table->metadata; }
const DatasetOptions& Dataset::options() const { return state_->options; }
std::int64_t Dataset::num_frames() const { return state_->table->columns.num_rows; }
const std::vector<std::int64_t>& Dataset::episodes() const { return state_->episodes; }

const at::Tensor& Dataset::column(const std::string& name) const {
  const auto it = state_->table->columns.numeric.find(name);
  if (it == state_->table->columns.numeric.end())
    fail(ErrorKind::kInternal, "dataset: there is no numeric column \"{}\".", name);
  return it->second;
}

std::int64_t Dataset::position(std::int64_t absolute_index) const {
  const std::vector<std::int64_t>& first = state_->first_index;
  const auto after = std::upper_bound(first.begin(), first.end(), absolute_index);
  if (after != first.begin()) {
    const auto place = static_cast<std::size_t>(after - first.begin()) - 1;
    const std::int64_t row = state_->row_begin[place] + absolute_index - first[place];
    if (row < state_->row_end[place]) return row;
  }
  fail(ErrorKind::kInternal, "dataset: frame {} is not in the selected episodes.", absolute_index);
}

Batch Dataset::collate(std::span<const std::int64_t> positions, std::span<const std::uint64_t> seeds) const {
  const State& state = *state_;
  std::vector<RowInEpisode> rows(positions.size());
  Batch batch;
  batch.task.reserve(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    rows[i] = state.locate(positions[i]);
    batch.task.push_back(state.table->metadata->tasks[static_cast<std::size_t>(state.task_of_row[positions[i]])]);
  }
  for (const NumericPlan& plan : state.numeric) {
    at::Tensor out = at::empty(state.sizes(rows.size(), plan.window, plan.row_sizes), plan.type);
    char* to = static_cast<char*>(out.mutable_data_ptr());
    for (const RowInEpisode& row : rows) {
      gather_window(plan.window, row, plan.table, plan.row_bytes, to);
      to += static_cast<std::size_t>(plan.window.length()) * plan.row_bytes;
    }
    batch.tensors.emplace(plan.name, std::move(out));
    state.add_padding(batch, plan.name, plan.window, rows);
  }
  for (const CameraPlan& plan : state.cameras) {
    batch.tensors.emplace(plan.name, state.pictures(plan, rows, seeds));
    state.add_padding(batch, plan.name, plan.window, rows);
  }
  return batch;
}

Sample Dataset::item(std::int64_t position, std::uint64_t seed) const {
  Batch batch = collate(std::span(&position, 1), std::span(&seed, 1));
  Sample sample;
  for (auto& [name, tensor] : batch.tensors) sample.tensors.emplace(name, tensor.select(0, 0));
  for (const auto& [name, values] : state_->table->columns.strings)
    if (const auto& value = values[static_cast<std::size_t>(position)]) sample.strings.emplace(name, *value);
  sample.task = std::move(batch.task.front());
  return sample;
}

std::vector<std::int64_t> select_episodes(const std::optional<std::vector<std::int64_t>>& episodes,
                                          const std::vector<std::int64_t>& exclude, std::int64_t num_episodes,
                                          log::Logger& logger) {
  std::vector<std::int64_t> selected;
  if (episodes) {
    std::vector<std::int64_t> negative, outside;
    std::set<std::int64_t> seen, twice;
    for (const std::int64_t episode : *episodes) {
      if (episode < 0)
        negative.push_back(episode);
      else if (episode >= num_episodes)
        outside.push_back(episode);
      if (!seen.insert(episode).second) twice.insert(episode);
    }
    if (!negative.empty())
      fail(ErrorKind::kConfig, "dataset.episodes: {} in {}; episodes must be non-negative, in the range 0..{}.",
           listed(negative), listed(*episodes), num_episodes - 1);
    if (!outside.empty())
      fail(ErrorKind::kConfig, "dataset.episodes: {} in {}; the dataset has episodes in the range 0..{}.",
           listed(outside), listed(*episodes), num_episodes - 1);
    if (!twice.empty())
      fail(ErrorKind::kConfig, "dataset.episodes: duplicates {} in {}; name each episode of the range 0..{} once.",
           listed(std::vector(twice.begin(), twice.end())), listed(*episodes), num_episodes - 1);
    selected = *episodes;
  } else {
    for (std::int64_t episode = 0; episode < num_episodes; ++episode) selected.push_back(episode);
  }
  std::vector<std::int64_t> dropped;
  for (const std::int64_t episode : exclude)
    if (episode < 0 || episode >= num_episodes) dropped.push_back(episode);
  if (!dropped.empty())
    logger.warning("dataset.exclude_episodes: {} are not in the range 0..{} and are ignored", listed(dropped),
                   num_episodes - 1);
  const std::set<std::int64_t> excluded(exclude.begin(), exclude.end());
  std::erase_if(selected, [&](std::int64_t episode) { return excluded.contains(episode); });
  if (selected.empty())
    fail(ErrorKind::kConfig, "dataset: no episode is left of {} (dataset.episodes {}, dataset.exclude_episodes {}).",
         num_episodes, episodes ? listed(*episodes) : "all", listed(exclude));
  return selected;
}

EpisodeAwareSampler make_sampler(const Dataset& dataset, SamplerOptions options, log::Logger& logger) {
  std::vector<std::int64_t> from, to;
  for (const Episode& episode : dataset.metadata().episodes) {
    from.push_back(episode.from);
    to.push_back(episode.to);
  }
  options.episodes = dataset.episodes();
  return {from, to, options, logger};
}

}  // namespace lerobot::data
