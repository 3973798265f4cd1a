#include "support/dataset_writer.hpp"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
}

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <stdexcept>

#include "lerobot/core/json.hpp"

namespace lerobot::test {
namespace fs = std::filesystem;
namespace {

void ok(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}
void ok(int code) {
  if (code < 0) throw std::runtime_error(fmt::format("FFmpeg error {}", code));
}

template <typename Builder, typename T>
std::shared_ptr<arrow::Array> array(const std::vector<T>& values) {
  Builder builder;
  for (const T& value : values) ok(builder.Append(value));
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> float_lists(const std::vector<std::vector<float>>& rows) {
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder builder(arrow::default_memory_pool(), values,
                                      static_cast<std::int32_t>(rows.front().size()));
  for (const auto& row : rows) {
    ok(builder.Append());
    for (const float value : row) ok(values->Append(value));
  }
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> text_lists(const std::vector<std::vector<std::string>>& rows) {
  auto values = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values);
  for (const auto& row : rows) {
    ok(builder.Append());
    for (const auto& value : row) ok(values->Append(value));
  }
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> images(const std::vector<std::vector<std::uint8_t>>& rows) {
  arrow::BinaryBuilder bytes;
  arrow::StringBuilder path;
  for (const auto& row : rows) {
    ok(bytes.Append(row.data(), static_cast<std::int32_t>(row.size())));
    ok(path.AppendNull());
  }
  return arrow::StructArray::Make({bytes.Finish().ValueOrDie(), path.Finish().ValueOrDie()},
                                  std::vector<std::string>{"bytes", "path"})
      .ValueOrDie();
}

class Table {
 public:
  void add(const std::string& name, std::shared_ptr<arrow::Array> values) {
    fields_.push_back(arrow::field(name, values->type()));
    arrays_.push_back(std::move(values));
  }
  void write(const fs::path& path, std::int64_t rows_per_group) const {
    fs::create_directories(path.parent_path());
    auto file = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
    ok(parquet::arrow::WriteTable(*arrow::Table::Make(arrow::schema(fields_), arrays_), arrow::default_memory_pool(),
                                  file, rows_per_group));
    ok(file->Close());
  }

 private:
  std::vector<std::shared_ptr<arrow::Field>> fields_;
  std::vector<std::shared_ptr<arrow::Array>> arrays_;
};

struct Closer {
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVFormatContext* p) const {
    avio_closep(&p->pb);
    avformat_free_context(p);
  }
};
template <typename T>
using Ptr = std::unique_ptr<T, Closer>;

Ptr<AVFrame> make_frame(AVPixelFormat format, int height, int width, int level) {
  Ptr<AVFrame> frame(av_frame_alloc());
  frame->format = format;
  frame->height = height;
  frame->width = width;
  ok(av_frame_get_buffer(frame.get(), 0));
  for (int y = 0; y < height; ++y)
    for (int plane = 0; plane < 3 && frame->data[plane] != nullptr; ++plane) {
      std::uint8_t* row = frame->data[plane] + y * frame->linesize[plane];
      for (int x = 0; x < width; ++x) {
        if (format == AV_PIX_FMT_GRAY16BE) {
          row[2 * x] = static_cast<std::uint8_t>(level >> 8);
          row[2 * x + 1] = static_cast<std::uint8_t>(level & 255);
        } else if (format == AV_PIX_FMT_RGB24) {
          for (int c = 0; c < 3; ++c) row[3 * x + c] = static_cast<std::uint8_t>(level);
        } else {
          row[x] = static_cast<std::uint8_t>(level);
        }
      }
    }
  return frame;
}

void write_video(const fs::path& path, const WrittenCamera& camera, int fps, const std::vector<int>& levels) {
  fs::create_directories(path.parent_path());
  AVFormatContext* raw = nullptr;
  ok(avformat_alloc_output_context2(&raw, nullptr, "mp4", path.c_str()));
  Ptr<AVFormatContext> file(raw);
  const AVCodec* codec = avcodec_find_encoder_by_name("libx264rgb");
  if (codec == nullptr) throw std::runtime_error("this FFmpeg has no libx264rgb");
  Ptr<AVCodecContext> encoder(avcodec_alloc_context3(codec));
  encoder->width = camera.width;
  encoder->height = camera.height;
  encoder->pix_fmt = AV_PIX_FMT_RGB24;
  encoder->time_base = {1, fps};
  encoder->framerate = {fps, 1};
  encoder->gop_size = camera.gop;
  encoder->max_b_frames = 2;
  encoder->thread_count = 1;
  if ((file->oformat->flags & AVFMT_GLOBALHEADER) != 0) encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  ok(av_opt_set(encoder->priv_data, "qp", "0", 0));
  ok(av_opt_set(encoder->priv_data, "x264-params", "log-level=none:b-adapt=0:scenecut=0", 0));
  ok(avcodec_open2(encoder.get(), codec, nullptr));
  AVStream* stream = avformat_new_stream(file.get(), nullptr);
  ok(avcodec_parameters_from_context(stream->codecpar, encoder.get()));
  stream->time_base = {1, fps * 1024};
  stream->avg_frame_rate = {fps, 1};
  ok(avio_open(&file->pb, path.c_str(), AVIO_FLAG_WRITE));
  ok(avformat_write_header(file.get(), nullptr));
  Ptr<AVPacket> packet(av_packet_alloc());
  const auto drain = [&] {
    while (avcodec_receive_packet(encoder.get(), packet.get()) >= 0) {
      av_packet_rescale_ts(packet.get(), encoder->time_base, stream->time_base);
      packet->stream_index = 0;
      packet->duration = stream->time_base.den / fps;
      ok(av_interleaved_write_frame(file.get(), packet.get()));
    }
  };
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Ptr<AVFrame> frame = make_frame(AV_PIX_FMT_RGB24, camera.height, camera.width, levels[i]);
    frame->pts = static_cast<std::int64_t>(i);
    ok(avcodec_send_frame(encoder.get(), frame.get()));
    drain();
  }
  ok(avcodec_send_frame(encoder.get(), nullptr));
  drain();
  ok(av_write_trailer(file.get()));
}

Json feature(const std::string& dtype, std::vector<std::int64_t> shape, Json names = nullptr) {
  return {{"dtype", dtype}, {"shape", std::move(shape)}, {"names", std::move(names)}};
}

int file_of(const std::vector<int>& files, std::size_t episode) { return files.empty() ? 0 : files[episode]; }

void write_json(const fs::path& path, const Json& json) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << json.dump(4);
}

void write_info(const fs::path& root, const WrittenDataset& dataset, std::int64_t num_frames, std::int64_t num_tasks) {
  Json features = Json::object();
  bool has_video = false;
  for (const WrittenCamera& camera : dataset.cameras) {
    features[camera.key] =
        feature(camera.video ? "video" : "image", {camera.height, camera.width, camera.depth ? 1 : 3},
                {"height", "width", "channels"});
    if (camera.depth) features[camera.key]["info"] = {{"is_depth_map", true}, {"depth_unit", "mm"}};
    has_video = has_video || camera.video;
  }
  features["observation.state"] = feature("float32", {2});
  features["action"] = feature("float32", {3});
  features["timestamp"] = feature("float32", {1});
  for (const char* name : {"frame_index", "episode_index", "index", "task_index"})
    features[name] = feature("int64", {1});
  Json info{{"codebase_version", dataset.codebase_version},
            {"fps", dataset.fps},
            {"features", features},
            {"total_episodes", dataset.lengths.size()},
            {"total_frames", num_frames},
            {"total_tasks", num_tasks},
            {"chunks_size", 1000},
            {"data_path", "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"},
            {"video_path", nullptr}};
  if (has_video) info["video_path"] = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";
  write_json(root / "meta" / "info.json", info);
}

void write_data_file(const fs::path& path, const WrittenDataset& dataset, const std::vector<std::size_t>& episodes,
                     const std::vector<std::int64_t>& from, const std::function<int(std::int64_t)>& level) {
  std::vector<std::vector<float>> state, action;
  std::vector<float> timestamp;
  std::vector<std::int64_t> frame_index, episode_index, index, task_index;
  std::map<std::string, std::vector<std::vector<std::uint8_t>>> pictures;
  for (const std::size_t episode : episodes)
    for (std::int64_t k = 0; k < dataset.lengths[episode]; ++k) {
      const std::int64_t frame = from[episode] + k;
      const auto value = static_cast<float>(frame);
      state.push_back({value, 2 * value});
      action.push_back({value, -value, 0.5F * value});
      const auto shift = dataset.timestamp_shift.find(frame);
      timestamp.push_back(static_cast<float>(static_cast<double>(k) / dataset.fps +
                                             (shift == dataset.timestamp_shift.end() ? 0 : shift->second)));
      frame_index.push_back(k);
      episode_index.push_back(static_cast<std::int64_t>(episode));
      index.push_back(frame);
      task_index.push_back(dataset.task_of_episode.empty() ? 0 : dataset.task_of_episode[episode]);
      for (const WrittenCamera& camera : dataset.cameras)
        if (!camera.video)
          pictures[camera.key].push_back(encode_png(
              camera.height, camera.width, camera.depth ? static_cast<int>(frame) : level(frame), camera.depth));
    }
  Table table;
  for (const auto& [key, rows] : pictures) table.add(key, images(rows));
  table.add("observation.state", float_lists(state));
  table.add("action", float_lists(action));
  table.add("timestamp", array<arrow::FloatBuilder>(timestamp));
  table.add("frame_index", array<arrow::Int64Builder>(frame_index));
  table.add("episode_index", array<arrow::Int64Builder>(episode_index));
  table.add("index", array<arrow::Int64Builder>(index));
  table.add("task_index", array<arrow::Int64Builder>(task_index));
  table.write(path, dataset.lengths[episodes.front()]);  // about one row group per episode
}

}  // namespace

int default_level(std::int64_t frame) { return 20 + 3 * static_cast<int>(frame % 70); }

std::vector<std::uint8_t> encode_png(int height, int width, int level, bool gray16) {
  const AVPixelFormat format = gray16 ? AV_PIX_FMT_GRAY16BE : AV_PIX_FMT_RGB24;
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
  Ptr<AVCodecContext> encoder(avcodec_alloc_context3(codec));
  encoder->width = width;
  encoder->height = height;
  encoder->pix_fmt = format;
  encoder->time_base = {1, 1};
  ok(avcodec_open2(encoder.get(), codec, nullptr));
  const Ptr<AVFrame> frame = make_frame(format, height, width, level);
  ok(avcodec_send_frame(encoder.get(), frame.get()));
  Ptr<AVPacket> packet(av_packet_alloc());
  ok(avcodec_receive_packet(encoder.get(), packet.get()));
  return {packet->data, packet->data + packet->size};
}

void write_dataset(const fs::path& root, const WrittenDataset& dataset) {
  const auto level = dataset.level ? dataset.level : default_level;
  std::vector<std::int64_t> from{0}, to, lengths = dataset.lengths, number, zero(lengths.size(), 0), data_file;
  std::vector<std::vector<std::string>> tasks;
  std::int64_t num_tasks = 1;
  for (std::size_t e = 0; e < lengths.size(); ++e) {
    to.push_back(from.back() + lengths[e]);
    from.push_back(to.back());
    number.push_back(static_cast<std::int64_t>(e));
    data_file.push_back(file_of(dataset.data_file_of_episode, e));
    const std::int64_t task = dataset.task_of_episode.empty() ? 0 : dataset.task_of_episode[e];
    num_tasks = std::max(num_tasks, task + 1);
    tasks.push_back({fmt::format("task {}", task)});
  }
  from.pop_back();
  write_info(root, dataset, to.back(), num_tasks);

  Table tasks_table, episodes;
  std::vector<std::int64_t> task_numbers;
  std::vector<std::string> task_names;
  for (std::int64_t task = 0; task < num_tasks; ++task) {
    task_numbers.push_back(task);
    task_names.push_back(fmt::format("task {}", task));
  }
  tasks_table.add("task_index", array<arrow::Int64Builder>(task_numbers));
  tasks_table.add("task", array<arrow::StringBuilder>(task_names));
  tasks_table.write(root / "meta" / "tasks.parquet", 1000);

  std::map<int, std::vector<std::size_t>> data_files;
  for (std::size_t e = 0; e < lengths.size(); ++e) data_files[file_of(dataset.data_file_of_episode, e)].push_back(e);
  for (const auto& [file, members] : data_files)
    write_data_file(root / fmt::format("data/chunk-000/file-{:03d}.parquet", file), dataset, members, from, level);

  episodes.add("episode_index", array<arrow::Int64Builder>(number));
  episodes.add("tasks", text_lists(tasks));
  episodes.add("length", array<arrow::Int64Builder>(lengths));
  episodes.add("data/chunk_index", array<arrow::Int64Builder>(zero));
  episodes.add("data/file_index", array<arrow::Int64Builder>(data_file));
  episodes.add("dataset_from_index", array<arrow::Int64Builder>(from));
  episodes.add("dataset_to_index", array<arrow::Int64Builder>(to));
  for (const WrittenCamera& camera : dataset.cameras) {
    if (!camera.video) continue;
    std::map<int, std::vector<int>> levels;
    std::vector<std::int64_t> file_index;
    std::vector<double> begin, end;
    for (std::size_t e = 0; e < lengths.size(); ++e) {
      std::vector<int>& frames = levels[file_of(camera.file_of_episode, e)];
      file_index.push_back(file_of(camera.file_of_episode, e));
      begin.push_back(static_cast<double>(frames.size()) / dataset.fps);
      for (std::int64_t k = 0; k < lengths[e]; ++k) frames.push_back(level(from[e] + k));
      end.push_back(static_cast<double>(frames.size()) / dataset.fps);
    }
    for (const auto& [file, frames] : levels)
      write_video(root / fmt::format("videos/{}/chunk-000/file-{:03d}.mp4", camera.key, file), camera, dataset.fps,
                  frames);
    const std::string prefix = "videos/" + camera.key + "/";
    episodes.add(prefix + "chunk_index", array<arrow::Int64Builder>(zero));
    episodes.add(prefix + "file_index", array<arrow::Int64Builder>(file_index));
    episodes.add(prefix + "from_timestamp", array<arrow::DoubleBuilder>(begin));
    episodes.add(prefix + "to_timestamp", array<arrow::DoubleBuilder>(end));
  }
  episodes.write(root / "meta" / "episodes" / "chunk-000" / "file-000.parquet", 1000);
}

}  // namespace lerobot::test
