#include "lerobot/formats/safetensors.hpp"

#include <cstring>
#include <utility>

namespace lerobot::formats {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, ErrorKind kind)
    : kind_(kind), file_(path, kind), header_(parse_safetensors_header(file_.bytes(), path, kind)) {
  for (std::size_t i = 0; i < header_.entries.size(); ++i) by_name_.emplace(header_.entries[i].name, i);
}

std::string_view SafetensorsFile::metadata(std::string_view key) const {
  for (const auto& [name, text] : header_.metadata)
    if (name == key) return text;
  return {};
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.entries[found->second];
}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name) const {
  const SafetensorsEntry* const entry = find(name);
  if (entry == nullptr)
    fail(kind_, "{}: has no tensor \"{}\" among its {}.", path().string(), name, header_.entries.size());
  return *entry;
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsEntry& entry) const {
  return file_.bytes().subspan(header_.data_offset + entry.begin, entry.nbytes());
}

}  // namespace lerobot::formats
