#include <algorithm>
#include <utility>

#include "lerobot/formats/safetensors.hpp"

namespace lerobot::formats {

// The head is made, and all that can be wrong with the tensors found, before the file is.
SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<SafetensorsSpec> tensors,
                                     SafetensorsMetadata metadata, ErrorKind kind)
    : SafetensorsWriter(path, make_safetensors_head(std::move(tensors), metadata, path, kind), kind) {}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::pair<std::string, std::vector<SafetensorsEntry>> head, ErrorKind kind)
    : entries_(std::move(head.second)), parts_(entries_.size()), head_(std::move(head.first)), file_(path, kind) {
  for (std::size_t i = 0; i < entries_.size(); ++i) by_name_.emplace(entries_[i].name, i);
  file_.append(std::as_bytes(std::span(head_)));
}

void SafetensorsWriter::write_part(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end())
    fail(ErrorKind::kInternal, "{}: tensor \"{}\" was not announced.", file_.path().string(), name);
  const SafetensorsEntry& entry = entries_[found->second];
  if (offset > entry.nbytes() || bytes.size() > entry.nbytes() - offset)
    fail(ErrorKind::kInternal, "{}: {} bytes at {} of tensor \"{}\" were given; it has {}.", file_.path().string(),
         bytes.size(), offset, name, entry.nbytes());
  if (bytes.empty()) return;
  file_.write_at(head_.size() + entry.begin + offset, bytes);
  std::vector<Part>& parts = parts_[found->second];
  if (!parts.empty() && parts.back().end == offset) {
    parts.back().end += bytes.size();
    parts.back().crc32c = crc32c(bytes, parts.back().crc32c);
  } else {
    parts.push_back({offset, offset + bytes.size(), crc32c(bytes)});
  }
}

std::vector<StoredRange> SafetensorsWriter::commit() {
  std::vector<StoredRange> ranges;
  ranges.reserve(entries_.size() + 1);
  ranges.push_back({"", 0, head_.size(), crc32c(std::as_bytes(std::span(head_)))});
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const SafetensorsEntry& entry = entries_[i];
    std::vector<Part>& parts = parts_[i];
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    StoredRange range{entry.name, head_.size() + entry.begin, 0, 0};
    for (const Part& part : parts) {
      if (part.begin != range.nbytes)
        fail(ErrorKind::kInternal, "{}: the bytes of tensor \"{}\" between {} and {} were {}.", file_.path().string(),
             entry.name, std::min(part.begin, range.nbytes), std::max(part.begin, range.nbytes),
             part.begin > range.nbytes ? "not written" : "written twice");
      range.crc32c = crc32c_combine(range.crc32c, part.crc32c, part.end - part.begin);
      range.nbytes = part.end;
    }
    if (range.nbytes != entry.nbytes())
      fail(ErrorKind::kInternal, "{}: only {} of the {} bytes of tensor \"{}\" were written.", file_.path().string(),
           range.nbytes, entry.nbytes(), entry.name);
    ranges.push_back(std::move(range));
  }
  file_.commit();
  return ranges;
}

std::vector<StoredRange> write_safetensors(const std::filesystem::path& path,
                                           const std::vector<SafetensorsTensor>& tensors,
                                           const SafetensorsMetadata& metadata, ErrorKind kind) {
  std::vector<SafetensorsSpec> specs;
  std::map<std::string_view, std::span<const std::byte>> bytes;
  specs.reserve(tensors.size());
  for (const SafetensorsTensor& tensor : tensors) {
    specs.push_back(tensor.spec);
    bytes.emplace(tensor.spec.name, tensor.bytes);
  }
  SafetensorsWriter writer(path, std::move(specs), metadata, kind);
  for (const SafetensorsEntry& entry : writer.entries()) writer.write(entry.name, bytes.at(entry.name));
  return writer.commit();
}

}  // namespace lerobot::formats
