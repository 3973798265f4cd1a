#include "lerobot/data/video.hpp"

#include <torch/torch.h>

#include <random>
#include <thread>

#include "support/expect_error.hpp"
#include "unit/data/fixtures.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::data::parse_decoder_cache_size;
using lerobot::data::VideoDecoder;
using lerobot::data::VideoDecoderCache;
using lerobot::test::default_level;
using lerobot::test::Fixture;

const Fixture& fixture() {
  static const Fixture written({.lengths = {60}, .cameras = {{.gop = 15}}});
  return written;
}
std::string path() {
  return (fixture().dir.path() / "videos/observation.images.front/chunk-000/file-000.mp4").string();
}

int level(VideoDecoder& decoder) {
  std::vector<std::uint8_t> pixels(3 * static_cast<std::size_t>(decoder.height() * decoder.width()));
  decoder.copy_rgb(pixels.data());
  CHECK(*std::min_element(pixels.begin(), pixels.end()) == *std::max_element(pixels.begin(), pixels.end()));
  return pixels.front();
}

}  // namespace

TEST_CASE("VideoDecoder: any order of times gives the frame shown then", "[video]") {
  VideoDecoder decoder(path());
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int frame = static_cast<int>(random() % 60);
    INFO("frame " << frame);
    const auto time = decoder.seek(frame / 10.0);
    REQUIRE(time);
    CHECK(*time == Approx(frame / 10.0).margin(1e-9));
    CHECK(level(decoder) == default_level(frame));
  }
  for (int frame = 59; frame >= 0; --frame) {
    REQUIRE(decoder.seek(frame / 10.0));
    CHECK(level(decoder) == default_level(frame));
  }
}

TEST_CASE("VideoDecoder: times between, before and after frames give the nearest", "[video]") {
  VideoDecoder decoder(path());
  for (const double start : {0.0, 2.0, 5.9}) {
    CHECK(*decoder.seek(start) == Approx(start));  // from wherever the decoder stands
    CHECK(*decoder.seek(1.56) == Approx(1.6));
    CHECK(*decoder.seek(1.54) == Approx(1.5));
    CHECK(*decoder.seek(1.45) == Approx(1.4));  // a tie: the earlier
    CHECK(*decoder.seek(-3.0) == Approx(0.0));
    CHECK(*decoder.seek(99.0) == Approx(5.9));
  }
  CHECK_FALSE(decoder.seek(std::nan("")));
}

TEST_CASE("VideoDecoder: what cannot be opened is named", "[video]") {
  lerobot::test::expect_error(ErrorKind::kDataset, {"absent.mp4"}, [] { VideoDecoder("absent.mp4"); });
  lerobot::test::expect_error(ErrorKind::kDataset, {"info.json"},
                              [] { VideoDecoder((fixture().dir.path() / "meta/info.json").string()); });
}

TEST_CASE("VideoDecoderCache: keeps decoders open, the least recently used goes first", "[video]") {
  const Fixture two({.lengths = {5, 5, 5}, .cameras = {{.file_of_episode = {0, 1, 2}}}});
  const auto file = [&](int i) {
    return (two.dir.path() / ("videos/observation.images.front/chunk-000/file-00" + std::to_string(i) + ".mp4"))
        .string();
  };
  VideoDecoderCache cache(2);
  const auto use = [&](int i) { CHECK(cache.borrow(file(i))->seek(0.2)); };
  use(0);
  use(0);
  CHECK(cache.num_opened() == 1);
  use(1);
  use(2);  // closes 0
  CHECK(cache.num_idle() == 2);
  use(1);
  CHECK(cache.num_opened() == 3);
  use(0);  // closes 2
  use(1);
  CHECK(cache.num_opened() == 4);
  use(2);
  CHECK(cache.num_opened() == 5);
  {
    const auto first = cache.borrow(file(2)), second = cache.borrow(file(2));
    CHECK(&*first != &*second);  // two threads at one file do not wait for each other
  }
  auto lease = cache.borrow(file(2));
  const std::size_t idle = cache.num_idle();
  lease.discard();
  CHECK(cache.num_idle() == idle);
}

TEST_CASE("VideoDecoderCache: threads share it", "[video]") {
  VideoDecoderCache cache(4);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 100; ++i) {
        const int frame = static_cast<int>(random() % 60);
        const auto decoder = cache.borrow(path());
        std::vector<std::uint8_t> pixels(3 * 32 * 32);
        if (!decoder->seek(frame / 10.0)) ++wrong;
        decoder->copy_rgb(pixels.data());
        if (pixels[5] != default_level(frame)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.num_opened() <= 4);
}

TEST_CASE("parse_decoder_cache_size: numbers, none and -1", "[video]") {
  CHECK(parse_decoder_cache_size(std::nullopt) == 100U);
  CHECK(parse_decoder_cache_size("7") == 7U);
  CHECK_FALSE(parse_decoder_cache_size("none"));
  CHECK_FALSE(parse_decoder_cache_size("-1"));
  for (const char* text : {"0", "-2", "many", "3x", "1.5"})
    lerobot::test::expect_error(ErrorKind::kConfig, {"LEROBOT_VIDEO_DECODER_CACHE_SIZE", text},
                                [&] { (void)parse_decoder_cache_size(text); });
}
