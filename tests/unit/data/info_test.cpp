#include "lerobot/data/info.hpp"

#include <fstream>

#include "lerobot/formats/json.hpp"
#include "support/collecting_logger.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace {

namespace fs = std::filesystem;
using lerobot::ErrorKind;
using lerobot::Json;
using lerobot::data::read_info;
using lerobot::test::CollectingLogger;
using lerobot::test::expect_error;

const fs::path kGolden = fs::path(LEROBOT_TEST_DATA) / "datasets" / "pusht_mini";

Json golden() { return lerobot::formats::read_json(kGolden / "meta" / "info.json", ErrorKind::kDataset); }

/// Reads an info.json with this content from a folder of its own.
lerobot::data::DatasetInfo read(const Json& json, CollectingLogger& logger) {
  const lerobot::test::TempDir dir;
  fs::create_directories(dir.path() / "meta");
  std::ofstream(dir.path() / "meta" / "info.json") << json.dump();
  return read_info(dir.path(), logger);
}

void refuses(const char* key, const Json& value, std::initializer_list<std::string> fragments) {
  Json json = golden();
  json[key] = value;
  CollectingLogger logger;
  expect_error(ErrorKind::kDataset, fragments, [&] { (void)read(json, logger); });
}

}  // namespace

TEST_CASE("read_info: a recorded dataset", "[info]") {
  CollectingLogger logger;
  const auto info = read_info(kGolden, logger);
  CHECK(logger.warnings.empty());
  CHECK(info.fps == 10);
  CHECK(info.total_frames == 482);
  CHECK(info.features.size() == 11);
  CHECK(info.camera_keys() == std::vector<std::string>{"observation.image"});
  CHECK_FALSE(info.find("observation.image")->is_depth);
  CHECK(info.find("action")->shape == std::vector<std::int64_t>{2});
  CHECK(info.data_file(0, 7) == "data/chunk-000/file-007.parquet");
  CHECK(info.data_file(1234, 7) == "data/chunk-1234/file-007.parquet");
  CHECK(info.video_file("observation.image", 2, 3) == "videos/observation.image/chunk-002/file-003.mp4");
}

TEST_CASE("read_info: another format version is refused before anything else (case D4)", "[info]") {
  CollectingLogger logger;
  const auto version = [&](const Json& value, std::initializer_list<std::string> fragments) {
    expect_error(ErrorKind::kDataset, fragments, [&] {
      (void)read({{"codebase_version", value}, {"features", 3}}, logger);
    });
  };
  version("v2.1", {"v2.1", "v3.0", "Convert it to v3.0 first", "lerobot_test_"});
  version("v4.0", {"v4.0", "v3.0", "lerobot_test_"});
  version("three", {"three", "v3.0"});
  expect_error(ErrorKind::kDataset, {"codebase_version", "v3.0", "lerobot_test_"}, [&] {
    (void)read({{"fps", 10}}, logger);
  });
  Json json = golden();
  json["codebase_version"] = "v3.1";
  CHECK(read(json, logger).fps == 10);
  CHECK(logger.warnings.size() == 1);
}

TEST_CASE("read_info: wrong values are named", "[info]") {
  refuses("fps", 0, {"\"fps\" is 0"});
  refuses("chunks_size", -1, {"chunks_size", "-1"});
  refuses("fps", "ten", {"fps", "ten"});
  refuses("video_path", nullptr, {"video_path"});
  refuses("features", {{"a/b", {{"dtype", "float32"}, {"shape", {1}}}}}, {"a/b", "'/'"});
  refuses("features", {{"a", {{"dtype", "complex64"}, {"shape", {1}}}}}, {"complex64", "float32"});
  refuses("features", {{"a", {{"dtype", "float32"}, {"shape", {99999999999}}}}}, {"shape"});
  refuses("features", Json::object(), {"timestamp"});
  refuses("total_frames", -3, {"total_frames"});
}

TEST_CASE("read_info: unknown keys are warned about, defaults filled in", "[info]") {
  Json json = golden();
  json["total_videos"] = 3;
  json.erase("chunks_size");
  json.erase("data_path");
  CollectingLogger logger;
  const auto info = read(json, logger);
  REQUIRE(logger.warnings.size() == 1);
  CHECK_THAT(logger.warnings[0], Catch::Matchers::Contains("total_videos"));
  CHECK(info.chunks_size == 1000);
  CHECK(info.data_file(0, 0) == "data/chunk-000/file-000.parquet");
}

TEST_CASE("read_info: depth maps are known by any of three flags", "[info]") {
  CollectingLogger logger;
  for (const auto& [outer, inner] :
       {std::pair{"info", "is_depth_map"}, {"info", "video.is_depth_map"}, {"video_info", "video.is_depth_map"}}) {
    Json json = golden();
    json["features"]["observation.image"].erase("info");
    json["features"]["observation.image"][outer] = {{inner, true}};
    CHECK(read(json, logger).find("observation.image")->is_depth);
  }
}

TEST_CASE("DatasetInfo: a path template with strange fields is refused", "[info]") {
  CollectingLogger logger;
  Json json = golden();
  json["data_path"] = "data/{chunk_index:0999999999d}";
  expect_error(ErrorKind::kDataset, {"chunk_index:0999999999d"}, [&] { (void)read(json, logger).data_file(0, 0); });
  json["data_path"] = "data/{nonsense}";
  expect_error(ErrorKind::kDataset, {"nonsense"}, [&] { (void)read(json, logger).data_file(0, 0); });
}
