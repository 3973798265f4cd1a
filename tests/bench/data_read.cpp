// What a batch costs: data_read <dataset root> [dataset root ...]
// For each dataset: microseconds per batch of 8 with action chunks of 100, in order and shuffled, and per picture.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <ctime>
#include <random>

#include "lerobot/data/data.hpp"

namespace {

using namespace lerobot;

/// Processor time: everything measured here runs in one thread, and a busy machine does not change the figure.
template <typename F>
double microseconds(F&& f) {
  const std::clock_t begin = std::clock();
  f();
  return static_cast<double>(std::clock() - begin) * 1e6 / static_cast<double>(CLOCKS_PER_SEC);
}

void measure_video(const data::Metadata& metadata, const std::string& key) {
  const data::EpisodeVideo& first = metadata.videos.at(key).front();
  const std::string path =
      (metadata.root / metadata.info.video_file(key, first.chunk_index, first.file_index)).string();
  const auto frames = static_cast<int>(metadata.info.total_frames);
  const auto fps = static_cast<double>(metadata.info.fps);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(1) << 24);
  data::VideoDecoder decoder(path);
  const auto read = [&](data::VideoDecoder& from, int frame) {
    if (from.seek(frame / fps)) from.copy_rgb(pixels.data());
  };
  std::mt19937 random(1);
  const double ordered = microseconds([&] {
                           for (int i = 0; i < frames; ++i) read(decoder, i);
                         }) /
                         frames;
  const double jumping = microseconds([&] {
                           for (int i = 0; i < frames; ++i)
                             read(decoder, static_cast<int>(random() % static_cast<unsigned>(frames)));
                         }) /
                         frames;
  const double opening = microseconds([&] {
                           for (int i = 0; i < 50; ++i) {
                             data::VideoDecoder fresh(path);
                             read(fresh, static_cast<int>(random() % static_cast<unsigned>(frames)));
                           }
                         }) /
                         50;
  fmt::print("  {}: us per frame with RGB: in order {:.1f}, random {:.1f}, opened each time {:.1f}\n", key, ordered,
             jumping, opening);
}

void measure(const std::string& root) {
  log::Logger logger;
  auto metadata = std::make_shared<const data::Metadata>(data::read_metadata(root, logger));
  std::vector<double> chunk;
  for (int i = 0; i < 100; ++i) chunk.push_back(i / static_cast<double>(metadata->info.fps));
  data::DatasetOptions options;
  options.delta_timestamps = {{"action", chunk}};
  options.return_uint8 = true;
  const data::Dataset dataset(metadata, options, logger);
  std::mt19937 random(1);
  std::vector<std::int64_t> rows(8);
  const int batches = metadata->info.camera_keys().empty() ? 20000 : 300;
  double shuffled = 1e30;
  for (int repeat = 0; repeat < 5; ++repeat)
    shuffled = std::min(shuffled,
                        microseconds([&] {
                          for (int i = 0; i < batches; ++i) {
                            for (auto& row : rows)
                              row = static_cast<std::int64_t>(random() % static_cast<unsigned>(dataset.num_frames()));
                            (void)dataset.collate(rows);
                          }
                        }) / batches);
  fmt::print("{}\n  us per batch of 8, action chunk 100, shuffled: {:.1f}\n", root, shuffled);
  for (const auto& [key, videos] : metadata->videos) measure_video(*metadata, key);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) measure(argv[i]);
}
