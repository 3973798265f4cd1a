#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "formats/json_scanner.hpp"
#include "formats/tensor_bytes.hpp"
#include "formats/utf8.hpp"
#include "lerobot/formats/safetensors.hpp"

namespace lerobot::formats {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";

// Turns the header into entries as it is read: no tree of a header of up to 100 MB is ever built.
class HeaderReader final : public JsonEvents {
 public:
  HeaderReader(const std::filesystem::path& where, ErrorKind kind, SafetensorsHeader& header)
      : where_(where), kind_(kind), header_(header) {}

  void begin_object() override {
    if (part_ == Part::kOutside) {
      part_ = Part::kTop;
    } else if (part_ == Part::kTop) {
      part_ = key_ == kMetadataName ? Part::kMetadata : Part::kTensor;
      if (part_ == Part::kTensor) {
        header_.entries.emplace_back().name = key_;
        seen_ = {};
      }
    } else {
      unexpected("an object");
    }
  }

  void key(std::string&& name) override {
    key_ = std::move(name);
    if (part_ == Part::kTensor && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      fail(kind_, "{}: tensor \"{}\" has the unknown key \"{}\"; expected dtype, shape and data_offsets.",
           where_.string(), tensor().name, key_);
  }

  void end_object() override {
    if (part_ == Part::kTensor) {
      finish_tensor();
      part_ = Part::kTop;
    } else {
      part_ = part_ == Part::kMetadata ? Part::kTop : Part::kDone;
    }
  }

  void begin_array() override {
    if (part_ == Part::kTensor && key_ == "shape") {
      part_ = Part::kShape;
    } else if (part_ == Part::kTensor && key_ == "data_offsets") {
      part_ = Part::kOffsets;
    } else {
      unexpected("an array");
    }
  }

  void end_array() override {
    if (part_ == Part::kOffsets && seen_.offsets != 2)
      fail(kind_, "{}: tensor \"{}\" has {} data_offsets; expected 2.", where_.string(), tensor().name, seen_.offsets);
    if (part_ == Part::kShape) seen_.shape = true;
    part_ = Part::kTensor;
  }

  void string(std::string&& value) override {
    if (part_ == Part::kMetadata) {
      header_.metadata.emplace_back(std::move(key_), std::move(value));
    } else if (part_ == Part::kTensor && key_ == "dtype") {
      const auto dtype = dtype_from_safetensors(value);
      if (!dtype) fail(kind_, "{}: tensor \"{}\" has the unknown dtype \"{}\".", where_.string(), tensor().name, value);
      tensor().dtype = *dtype;
      seen_.dtype = true;
    } else {
      unexpected("a string");
    }
  }

  void integer(std::int64_t value) override {
    if (part_ != Part::kShape && part_ != Part::kOffsets) unexpected("a number");
    if (value < 0)
      fail(kind_, "{}: tensor \"{}\" has {} in its {}; expected numbers from 0 on.", where_.string(), tensor().name,
           value, key_);
    if (part_ == Part::kOffsets) {
      if (seen_.offsets < 2) (seen_.offsets == 0 ? tensor().begin : tensor().end) = static_cast<std::uint64_t>(value);
      ++seen_.offsets;
    } else if (tensor().shape.size() == kMaxDims) {
      fail(kind_, "{}: tensor \"{}\" has more than {} dimensions.", where_.string(), tensor().name, kMaxDims);
    } else {
      tensor().shape.push_back(value);
    }
  }

  void null() override { unexpected("null"); }
  void boolean(bool) override { unexpected("a boolean"); }
  void number(double) override { unexpected("a fraction"); }
  void large_integer(std::uint64_t value) override {
    if (part_ != Part::kShape && part_ != Part::kOffsets) unexpected("a number");
    fail(kind_, "{}: tensor \"{}\" has {} in its {}; the largest number is {}.", where_.string(), tensor().name, value,
         key_, std::numeric_limits<std::int64_t>::max());
  }

 private:
  enum class Part { kOutside, kTop, kTensor, kShape, kOffsets, kMetadata, kDone };
  struct Seen {
    bool dtype = false;
    bool shape = false;
    int offsets = 0;
  };

  SafetensorsEntry& tensor() { return header_.entries.back(); }

  [[noreturn]] void unexpected(std::string_view what) {
    switch (part_) {
      case Part::kTop:
        fail(kind_, "{}: the header has {} under \"{}\"; expected an object with dtype, shape and data_offsets.",
             where_.string(), what, key_);
      case Part::kMetadata:
        fail(kind_, "{}: the header has {} under {} \"{}\"; expected a string.", where_.string(), what, kMetadataName,
             key_);
      case Part::kTensor:
      case Part::kShape:
      case Part::kOffsets:
        fail(kind_, "{}: tensor \"{}\" has {} in its {}; expected {}.", where_.string(), tensor().name, what, key_,
             key_ == "dtype" ? "a string" : "an array of whole numbers");
      default:
        fail(kind_, "{}: the header is {}; expected an object of tensors.", where_.string(), what);
    }
  }

  void finish_tensor() {
    const auto need = [this](bool there, std::string_view what) {
      if (!there) fail(kind_, "{}: tensor \"{}\" has no {}.", where_.string(), tensor().name, what);
    };
    need(seen_.dtype, "dtype");
    need(seen_.shape, "shape");
    need(seen_.offsets == 2, "data_offsets");
  }

  const std::filesystem::path& where_;
  ErrorKind kind_;
  SafetensorsHeader& header_;
  Part part_ = Part::kOutside;
  std::string key_;
  Seen seen_;
};

// Every byte of the data belongs to exactly one tensor, and each tensor has as many as its shape needs.
void check_layout(const SafetensorsHeader& header, std::uint64_t data_nbytes, const std::filesystem::path& where,
                  ErrorKind kind) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(header.entries.size());
  for (const SafetensorsEntry& entry : header.entries) {
    const auto needed = tensor_nbytes(entry.dtype, entry.shape);
    if (!needed)
      fail(kind, "{}: tensor \"{}\" has shape [{}], which is larger than memory can be.", where.string(), entry.name,
           fmt::join(entry.shape, ", "));
    if (entry.end < entry.begin || entry.nbytes() != *needed)
      fail(kind, "{}: tensor \"{}\" has shape [{}] of {}, which takes {} bytes, but its data_offsets are [{}, {}].",
           where.string(), entry.name, fmt::join(entry.shape, ", "), info(entry.dtype).safetensors, *needed,
           entry.begin, entry.end);
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::uint64_t covered = 0;
  std::string_view before;
  for (const SafetensorsEntry* entry : order) {
    if (entry->begin < covered)
      fail(kind, "{}: tensors \"{}\" and \"{}\" overlap: the first ends at byte {}, the second begins at {}.",
           where.string(), before, entry->name, covered, entry->begin);
    if (entry->begin > covered)
      fail(kind, "{}: bytes {} to {} in front of tensor \"{}\"{} belong to no tensor.", where.string(), covered,
           entry->begin, entry->name, before.empty() ? "" : fmt::format(" and behind \"{}\"", before));
    if (entry->end > data_nbytes)
      fail(kind,
           "{}: tensor \"{}\" ends at byte {} of the data, but the file has only {}. The copy is incomplete; "
           "copy the file again.",
           where.string(), entry->name, entry->end, data_nbytes);
    covered = entry->end;
    before = entry->name;
  }
  if (covered != data_nbytes)
    fail(kind, "{}: {} bytes follow the last tensor, which ends at byte {} of the data; they belong to no tensor.",
         where.string(), data_nbytes - covered, covered);
}

std::string json_text(std::string_view text) { return dump_python(Json(std::string(text)), -1, false); }

void check_names(const std::vector<SafetensorsSpec>& tensors, const SafetensorsMetadata& metadata,
                 const std::filesystem::path& where, ErrorKind kind) {
  std::set<std::string_view> seen;
  const auto check = [&](std::string_view name, std::string_view what) {
    if (const auto bad = find_invalid_utf8(name))
      fail(kind, "{}: byte {} of a {} is not UTF-8.", where.string(), *bad, what);
    if (!seen.insert(name).second) fail(kind, "{}: the {} \"{}\" appears twice.", where.string(), what, name);
  };
  for (const SafetensorsSpec& tensor : tensors) {
    check(tensor.name, "tensor name");
    if (tensor.name == kMetadataName)
      fail(kind, "{}: a tensor is called {}, which safetensors keeps for itself. Rename it.", where.string(),
           kMetadataName);
    if (tensor.shape.size() > kMaxDims || !tensor_nbytes(tensor.dtype, tensor.shape))
      fail(kind, "{}: tensor \"{}\" has shape [{}], which no file can hold.", where.string(), tensor.name,
           fmt::join(tensor.shape, ", "));
  }
  seen.clear();
  for (const auto& [key, text] : metadata) {
    check(key, "metadata key");
    if (find_invalid_utf8(text)) fail(kind, "{}: the metadata text of \"{}\" is not UTF-8.", where.string(), key);
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::filesystem::path& where,
                                           ErrorKind kind) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length))
    fail(kind, "{}: {} bytes; a safetensors file begins with a header length of 8 bytes.", where.string(), file.size());
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > kMaxSafetensorsHeaderBytes)
    fail(kind,
         "{}: header length {}; the limit is 100,000,000 bytes. This is not a safetensors file, or it is damaged.",
         where.string(), length);
  if (length > file.size() - sizeof(length))
    fail(kind, "{}: header length {}, but only {} bytes follow. The copy is incomplete; copy the file again.",
         where.string(), length, file.size() - sizeof(length));
  if (length == 0 || file[sizeof(length)] != std::byte{'{'})
    fail(kind, "{}: the header of {} bytes does not begin with '{{'; expected a JSON object.", where.string(), length);

  SafetensorsHeader header;
  header.data_offset = sizeof(length) + length;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof(length), length);
  HeaderReader reader(where, kind, header);
  scan_json(text, where, kind, {.max_bytes = kMaxSafetensorsHeaderBytes, .max_depth = 8}, reader);
  check_layout(header, file.size() - header.data_offset, where, kind);
  return header;
}

std::pair<std::string, std::vector<SafetensorsEntry>> make_safetensors_head(std::vector<SafetensorsSpec> tensors,
                                                                            const SafetensorsMetadata& metadata,
                                                                            const std::filesystem::path& where,
                                                                            ErrorKind kind) {
  check_names(tensors, metadata, where, kind);
  // The enumerators of DType stand in the reference writer's order, narrowest first.
  std::sort(tensors.begin(), tensors.end(), [](const SafetensorsSpec& a, const SafetensorsSpec& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  std::vector<SafetensorsEntry> entries;
  entries.reserve(tensors.size());
  std::uint64_t end = 0;
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, text] : metadata) {
      if (&key != &metadata.front().first) json += ',';
      json += json_text(key) + ":" + json_text(text);
    }
    json += '}';
  }
  for (SafetensorsSpec& tensor : tensors) {
    const std::uint64_t nbytes = *tensor_nbytes(tensor.dtype, tensor.shape);
    if (nbytes > std::numeric_limits<std::uint64_t>::max() / 2 - end)
      fail(kind, "{}: the tensors up to \"{}\" together are larger than a file can be.", where.string(), tensor.name);
    if (json.size() > 1) json += ',';
    json += json_text(tensor.name);
    json += fmt::format(":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", info(tensor.dtype).safetensors,
                        fmt::join(tensor.shape, ","), end, end + nbytes);
    entries.push_back({std::move(tensor.name), tensor.dtype, std::move(tensor.shape), end, end + nbytes});
    end += nbytes;
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  if (json.size() > kMaxSafetensorsHeaderBytes)
    fail(kind, "{}: {} tensors need a header of {} bytes; the limit is 100,000,000 bytes.", where.string(),
         entries.size(), json.size());
  std::uint64_t length = json.size();
  std::string head(reinterpret_cast<const char*>(&length), sizeof(length));
  return {head + json, std::move(entries)};
}

}  // namespace lerobot::formats
