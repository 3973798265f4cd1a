#include "lerobot/formats/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "formats/json_scanner.hpp"
#include "formats/relative_path.hpp"
#include "formats/utf8.hpp"
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/json.hpp"
#include "lerobot/formats/mapped_file.hpp"

namespace lerobot::formats {
namespace {

constexpr int kVersion = 1;
constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;
// The text ends with its own sum, which is over all bytes in front of this.
constexpr std::string_view kSumLead = "\"crc32c\": \"";
constexpr std::string_view kSumTail = "\"\n}\n";
constexpr std::size_t kSumDigits = 8;
constexpr std::size_t kEndBytes = kSumLead.size() + kSumDigits + kSumTail.size();

std::string json_text(std::string_view text) { return dump_python(Json(std::string(text)), -1, false); }

// Empty when the ranges are ascending, apart and inside the file.
std::string fault_of(const ManifestFile& file) {
  std::uint64_t end = 0;
  for (const StoredRange& range : file.ranges) {
    if (range.offset < end || range.offset > file.nbytes || range.nbytes > file.nbytes - range.offset)
      return fmt::format("range \"{}\" of {} bytes at {} overlaps another or leaves the file of {} bytes", range.name,
                         range.nbytes, range.offset, file.nbytes);
    end = range.offset + range.nbytes;
  }
  return {};
}

std::optional<std::uint32_t> parse_sum(std::string_view digits) {
  std::uint32_t sum = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sum, 16);
  if (digits.size() != kSumDigits || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return sum;
}

// A manifest of a large run lists a million ranges: they go straight into their structures.
class ManifestReader final : public JsonEvents {
 public:
  ManifestReader(const std::filesystem::path& where, Manifest& manifest) : where_(where), manifest_(manifest) {}

  void begin_object() override {
    if (++depth_ == 2 && section_ != "files") refuse("an object outside its files");
    if (depth_ == 2) {
      path_.clear();
      file_ = {};
    } else if (depth_ == 3) {
      file_.ranges.emplace_back();
    } else if (depth_ > 3) {
      refuse("objects nested too deep");
    }
  }

  void key(std::string&& name) override {
    if (depth_ == 1) section_ = name;
    key_ = std::move(name);
  }

  void end_object() override {
    if (--depth_ != 1) return;
    if (!stays_inside(path_)) refuse(fmt::format("the path \"{}\", which leaves the folder", path_));
    if (const std::string fault = fault_of(file_); !fault.empty()) refuse(fmt::format("{}: {}", path_, fault));
    if (manifest_.find(path_) != nullptr) refuse(fmt::format("\"{}\" twice", path_));
    manifest_.add_file(std::move(path_), file_.nbytes, std::move(file_.ranges));
  }

  void string(std::string&& value) override {
    if (depth_ == 2 && key_ == "path") {
      path_ = std::move(value);
    } else if (depth_ == 3 && key_ == "name") {
      file_.ranges.back().name = std::move(value);
    } else if (depth_ == 3 && key_ == "crc32c") {
      const auto sum = parse_sum(value);
      if (!sum) refuse(fmt::format("the sum \"{}\"", value));
      file_.ranges.back().crc32c = *sum;
    } else if (depth_ != 1 || key_ != "crc32c") {
      refuse(fmt::format("text under \"{}\"", key_));
    }
  }

  void integer(std::int64_t value) override {
    if (value < 0) refuse(fmt::format("{} under \"{}\"", value, key_));
    const auto number = static_cast<std::uint64_t>(value);
    if (depth_ == 1 && key_ == "version") {
      if (value != kVersion)
        fail(ErrorKind::kCheckpoint, "{}: version {}; this program reads version {}.", where_.string(), value,
             kVersion);
    } else if (depth_ == 2 && key_ == "nbytes") {
      file_.nbytes = number;
    } else if (depth_ == 3 && key_ == "offset") {
      file_.ranges.back().offset = number;
    } else if (depth_ == 3 && key_ == "nbytes") {
      file_.ranges.back().nbytes = number;
    } else {
      refuse(fmt::format("a number under \"{}\"", key_));
    }
  }

  void begin_array() override {
    const bool expected = (depth_ == 1 && key_ == "files") || (depth_ == 2 && key_ == "ranges");
    if (!expected) refuse(fmt::format("an array under \"{}\"", key_));
  }
  void end_array() override {}
  void null() override { refuse(fmt::format("null under \"{}\"", key_)); }
  void boolean(bool) override { refuse(fmt::format("a boolean under \"{}\"", key_)); }
  void number(double) override { refuse(fmt::format("a fraction under \"{}\"", key_)); }
  void large_integer(std::uint64_t) override { refuse(fmt::format("too large a number under \"{}\"", key_)); }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::kCheckpoint, "{}: is not a manifest of this program: it has {}.", where_.string(), what);
  }

  const std::filesystem::path& where_;
  Manifest& manifest_;
  int depth_ = 0;
  std::string section_;
  std::string key_;
  std::string path_;
  ManifestFile file_;
};

}  // namespace

void Manifest::add_file(std::string path, std::uint64_t nbytes, std::vector<StoredRange> ranges) {
  ManifestFile file{nbytes, std::move(ranges)};
  if (!stays_inside(path) || find_invalid_utf8(path) || path == kManifestName)
    fail(ErrorKind::kInternal, "manifest: \"{}\" cannot be listed.", path);
  if (const std::string fault = fault_of(file); !fault.empty())
    fail(ErrorKind::kInternal, "manifest: {}: {}.", path, fault);
  files_.insert_or_assign(std::move(path), std::move(file));
}

void Manifest::remove_file(std::string_view path) {
  if (const auto found = files_.find(path); found != files_.end()) files_.erase(found);
}

void Manifest::merge(Manifest other) {
  for (auto& [path, file] : other.files_) files_.insert_or_assign(path, std::move(file));
}

const ManifestFile* Manifest::find(std::string_view path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

std::string Manifest::text() const {
  std::string out = fmt::format("{{\n\"version\": {},\n\"files\": [", kVersion);
  bool first_file = true;
  for (const auto& [path, file] : files_) {
    out += fmt::format("{}\n{{\"path\": {}, \"nbytes\": {}, \"ranges\": [", first_file ? "" : ",", json_text(path),
                       file.nbytes);
    first_file = false;
    bool first_range = true;
    for (const StoredRange& range : file.ranges) {
      out += first_range ? "\n{" : ",\n{";
      first_range = false;
      if (!range.name.empty()) out += fmt::format("\"name\": {}, ", json_text(range.name));
      out += fmt::format("\"offset\": {}, \"nbytes\": {}, \"crc32c\": \"{:08x}\"}}", range.offset, range.nbytes,
                         range.crc32c);
    }
    out += "]}";
  }
  out += "\n],\n";
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(out)));
  return out + fmt::format("{}{:08x}{}", kSumLead, sum, kSumTail);
}

Manifest Manifest::parse(std::string_view text, const std::filesystem::path& where) {
  const std::string_view body = text.substr(0, text.size() - std::min(text.size(), kEndBytes));
  const std::string_view end = text.substr(body.size());
  const auto sum = end.size() == kEndBytes ? parse_sum(end.substr(kSumLead.size(), kSumDigits)) : std::nullopt;
  if (!sum || !end.starts_with(kSumLead) || !end.ends_with(kSumTail) || *sum != crc32c(std::as_bytes(std::span(body))))
    fail(ErrorKind::kCheckpoint,
         "{}: is damaged or was changed: its own CRC-32C does not fit its text. Copy the "
         "checkpoint again, or accept its files as they are with lerobot-checkpoint seal.",
         where.string());
  Manifest manifest;
  ManifestReader reader(where, manifest);
  scan_json(text, where, ErrorKind::kCheckpoint, {.max_bytes = kMaxBytes, .max_depth = 8}, reader);
  return manifest;
}

void Manifest::write(const std::filesystem::path& directory) const {
  write_file_atomically(directory / kManifestName, text());
}

std::optional<Manifest> Manifest::read(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kManifestName;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  const MappedFile file(path);
  return parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

}  // namespace lerobot::formats
