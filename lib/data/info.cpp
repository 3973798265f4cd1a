#include "lerobot/data/info.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "data/json_access.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/formats/json.hpp"

namespace lerobot::data {
namespace {

constexpr int kMajor = 3, kMinor = 0;
constexpr std::array kKnownKeys{"codebase_version",
                                "fps",
                                "features",
                                "total_episodes",
                                "total_frames",
                                "total_tasks",
                                "chunks_size",
                                "data_files_size_in_mb",
                                "video_files_size_in_mb",
                                "data_path",
                                "video_path",
                                "robot_type",
                                "splits",
                                "tools"};

void check_version(const Json& json, const std::filesystem::path& root, log::Logger& logger) {
  const auto it = json.find("codebase_version");
  if (it == json.end() || !it->is_string())
    fail(ErrorKind::kDataset, "dataset {}: meta/info.json has no codebase_version; this program reads v{}.{}.",
         root.string(), kMajor, kMinor);
  const std::string text = it->get<std::string>();
  int major = -1, minor = 0;
  const char* begin = text.data() + (!text.empty() && text.front() == 'v' ? 1 : 0);
  const char* end = text.data() + text.size();
  auto parsed = std::from_chars(begin, end, major);
  if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '.') std::from_chars(parsed.ptr + 1, end, minor);
  if (parsed.ec != std::errc() || major < 0)
    fail(ErrorKind::kDataset, "dataset {}: codebase_version is \"{}\"; expected v{}.{}.", root.string(), text, kMajor,
         kMinor);
  if (major < kMajor)
    fail(ErrorKind::kDataset,
         "dataset {}: its format version is {}, this program reads v{}.{}. Convert it to v3.0 first "
         "(python -m lerobot.scripts.convert_dataset_v21_to_v30 --repo-id=<id>).",
         root.string(), text, kMajor, kMinor);
  if (major > kMajor)
    fail(ErrorKind::kDataset,
         "dataset {}: its format version is {}, this program reads v{}.{} only. Use a newer program.", root.string(),
         text, kMajor, kMinor);
  if (minor != kMinor)
    logger.warning("dataset {}: its format version is {}, this program was written for v{}.{}", root.string(), text,
                   kMajor, kMinor);
}

ColumnKind kind_of(const std::string& dtype, const std::string& feature, const std::string& where) {
  if (dtype == "image") return ColumnKind::kImage;
  if (dtype == "video") return ColumnKind::kVideo;
  if (dtype == "string") return ColumnKind::kString;
  if (dtype == "language") return ColumnKind::kLanguage;
  if (dtype == "bool") return ColumnKind::kBool;
  for (const char* name : {"float16", "float32", "float64"})
    if (dtype == name) return ColumnKind::kFloat;
  for (const char* name : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
    if (dtype == name) return ColumnKind::kInt;
  fail(ErrorKind::kDataset,
       "{}: feature \"{}\" has dtype \"{}\"; expected float16, float32, float64, "
       "a signed or unsigned int8 to int64, bool, image, video, string or language.",
       where, feature, dtype);
}

bool flagged_as_depth(const Json& feature) {
  const auto flag = [](const Json& object, const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_boolean() && object[key].get<bool>();
  };
  const Json info = feature.value("info", Json());
  return flag(info, "is_depth_map") || flag(info, "video.is_depth_map") ||
         flag(feature.value("video_info", Json()), "video.is_depth_map");
}

Feature read_feature(const std::string& name, const Json& json, const std::string& where) {
  if (name.empty() || name.find('/') != std::string::npos)
    fail(ErrorKind::kDataset, "{}: feature name \"{}\" is empty or has a '/' in it.", where, name);
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() || !json.contains("shape") ||
      !json["shape"].is_array())
    fail(ErrorKind::kDataset, "{}: feature \"{}\" is {}; expected an object with dtype and shape.", where, name,
         json.dump());
  Feature feature;
  feature.name = name;
  feature.dtype = json["dtype"].get<std::string>();
  feature.kind = kind_of(feature.dtype, name, where);
  std::int64_t numel = 1;
  for (const Json& dim : json["shape"]) {
    if (!dim.is_number_integer() || dim.get<std::int64_t>() < 1 || dim.get<std::int64_t>() > (std::int64_t{1} << 28) ||
        (numel *= dim.get<std::int64_t>()) > (std::int64_t{1} << 31))
      fail(ErrorKind::kDataset, "{}: feature \"{}\" has shape {}; expected positive sizes.", where, name,
           json["shape"].dump());
    feature.shape.push_back(dim.get<std::int64_t>());
  }
  feature.names = json.value("names", Json());
  feature.info = json.value("info", Json());
  feature.is_depth = feature.is_camera() && flagged_as_depth(json);
  if (feature.is_camera() && feature.shape.size() != 3)
    fail(ErrorKind::kDataset, "{}: camera \"{}\" has shape {}; expected height, width, channels.", where, name,
         json["shape"].dump());
  return feature;
}

void check_default_features(const DatasetInfo& info, const std::string& where) {
  struct Default {
    const char* name;
    ColumnKind kind;
  };
  for (const Default& wanted : {Default{"timestamp", ColumnKind::kFloat}, Default{"frame_index", ColumnKind::kInt},
                                Default{"episode_index", ColumnKind::kInt}, Default{"index", ColumnKind::kInt},
                                Default{"task_index", ColumnKind::kInt}}) {
    const Feature* feature = info.find(wanted.name);
    if (feature == nullptr || feature->kind != wanted.kind || feature->shape != std::vector<std::int64_t>{1})
      fail(ErrorKind::kDataset, "{}: feature \"{}\" is missing or of another type; every dataset has it as {} [1].",
           where, wanted.name, wanted.kind == ColumnKind::kFloat ? "float32" : "int64");
  }
}

/// Puts values into "{name}" and "{name:0Nd}" of a path template.
std::string fill_template(std::string_view text, const std::function<std::string(std::string_view)>& value) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t close = text[i] == '{' ? text.find('}', i) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += text[i];
      continue;
    }
    const std::string_view field = text.substr(i + 1, close - i - 1);
    const std::size_t colon = field.find(':');
    std::string filled = value(field.substr(0, colon));
    if (colon != std::string_view::npos) {
      const std::string_view spec = field.substr(colon + 1);
      if (spec.size() != 3 || spec[0] != '0' || spec[1] < '0' || spec[1] > '9' || spec[2] != 'd')
        fail(ErrorKind::kDataset,
             "meta/info.json: path template \"{}\": \"{}\" is not understood; expected {{name:03d}}.", text, field);
      const auto width = static_cast<std::size_t>(spec[1] - '0');
      if (filled.size() < width) filled.insert(0, width - filled.size(), '0');
    }
    out += filled;
    i = close;
  }
  return out;
}

std::string path_value(std::string_view field, std::string_view key, std::int64_t chunk, std::int64_t file) {
  if (field == "chunk_index") return std::to_string(chunk);
  if (field == "file_index") return std::to_string(file);
  if (field == "video_key" && !key.empty()) return std::string(key);
  fail(ErrorKind::kDataset, "meta/info.json: path template has an unknown field \"{}\".", field);
}

}  // namespace

const Feature* DatasetInfo::find(std::string_view name) const {
  const auto it = std::find_if(features.begin(), features.end(), [&](const Feature& f) { return f.name == name; });
  return it == features.end() ? nullptr : &*it;
}

std::vector<std::string> DatasetInfo::camera_keys() const {
  std::vector<std::string> keys;
  for (const Feature& feature : features)
    if (feature.is_camera()) keys.push_back(feature.name);
  return keys;
}

std::string DatasetInfo::data_file(std::int64_t chunk, std::int64_t file) const {
  return fill_template(data_path, [&](std::string_view field) { return path_value(field, {}, chunk, file); });
}

std::string DatasetInfo::video_file(std::string_view key, std::int64_t chunk, std::int64_t file) const {
  return fill_template(video_path, [&](std::string_view field) { return path_value(field, key, chunk, file); });
}

DatasetInfo read_info(const std::filesystem::path& root, log::Logger& logger) {
  const std::filesystem::path path = root / "meta" / "info.json";
  const std::string where = path.string();
  const Json json = formats::read_json(path, ErrorKind::kDataset);
  if (!json.is_object()) fail(ErrorKind::kDataset, "{}: expected a JSON object.", where);
  check_version(json, root, logger);
  for (const auto& [key, value] : json.items())
    if (std::find(kKnownKeys.begin(), kKnownKeys.end(), key) == kKnownKeys.end())
      logger.warning("{}: unknown key \"{}\" is ignored", where, key);

  DatasetInfo info;
  info.codebase_version = json["codebase_version"].get<std::string>();
  info.fps = json_int(json, "fps", 0, where);
  info.total_episodes = json_int(json, "total_episodes", 0, where);
  info.total_frames = json_int(json, "total_frames", 0, where);
  info.total_tasks = json_int(json, "total_tasks", 0, where);
  info.chunks_size = json_int(json, "chunks_size", info.chunks_size, where);
  info.data_files_size_in_mb = json_int(json, "data_files_size_in_mb", info.data_files_size_in_mb, where);
  info.video_files_size_in_mb = json_int(json, "video_files_size_in_mb", info.video_files_size_in_mb, where);
  info.data_path = json_string(json, "data_path", "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet", where);
  info.video_path =
      json_string(json, "video_path", "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4", where);
  info.robot_type = json_string(json, "robot_type", "", where);
  info.splits = json.value("splits", Json::object());
  const std::array positive{std::pair{"fps", info.fps}, std::pair{"chunks_size", info.chunks_size},
                            std::pair{"data_files_size_in_mb", info.data_files_size_in_mb},
                            std::pair{"video_files_size_in_mb", info.video_files_size_in_mb}};
  for (const auto& [key, value] : positive)
    if (value <= 0) fail(ErrorKind::kDataset, "{}: \"{}\" is {}; expected a number above 0.", where, key, value);
  const std::array counts{std::pair{"total_episodes", info.total_episodes},
                          std::pair{"total_frames", info.total_frames}, std::pair{"total_tasks", info.total_tasks}};
  for (const auto& [key, value] : counts)
    if (value < 0) fail(ErrorKind::kDataset, "{}: \"{}\" is {}; expected 0 or more.", where, key, value);

  const Json features = json.value("features", Json());
  if (!features.is_object()) fail(ErrorKind::kDataset, "{}: \"features\" is missing or not an object.", where);
  for (const auto& [name, feature] : features.items()) info.features.push_back(read_feature(name, feature, where));
  check_default_features(info, where);
  const bool has_video = std::any_of(info.features.begin(), info.features.end(),
                                     [](const Feature& f) { return f.kind == ColumnKind::kVideo; });
  if (has_video && info.video_path.empty())
    fail(ErrorKind::kDataset, "{}: there are video features, but \"video_path\" is null.", where);
  return info;
}

}  // namespace lerobot::data
