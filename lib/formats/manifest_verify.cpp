#include <algorithm>
#include <system_error>
#include <utility>

#include "formats/posix_file.hpp"
#include "lerobot/formats/manifest.hpp"
#include "lerobot/formats/mapped_file.hpp"
#include "lerobot/formats/safetensors.hpp"

namespace lerobot::formats {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kBlockBytes = 4 << 20;

std::string describe_range(std::string_view name, std::uint64_t offset, std::uint64_t nbytes) {
  const std::string bytes = fmt::format("bytes {} to {}", offset, offset + nbytes);
  return name.empty() ? bytes : fmt::format("\"{}\", {}", name, bytes);
}

// The damage of one range; its bytes must be inside `whole`.
std::optional<std::string> fault_of(const StoredRange& range, std::span<const std::byte> whole) {
  const std::uint32_t found = crc32c(whole.subspan(range.offset, range.nbytes));
  if (found == range.crc32c) return std::nullopt;
  return fmt::format("CRC-32C is {:08x}, the manifest says {:08x}", found, range.crc32c);
}

std::string fault_of_length(std::uint64_t found, std::uint64_t listed) {
  return fmt::format("has {} bytes, the manifest says {}", found, listed);
}

}  // namespace

std::vector<StoredRange> block_ranges(std::span<const std::byte> bytes) {
  std::vector<StoredRange> ranges;
  for (std::uint64_t offset = 0; offset < bytes.size(); offset += kBlockBytes) {
    const auto block = bytes.subspan(offset, std::min<std::uint64_t>(kBlockBytes, bytes.size() - offset));
    ranges.push_back({"", offset, block.size(), crc32c(block)});
  }
  return ranges;
}

ManifestFile describe_file(const fs::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (path.extension() != ".safetensors") return {bytes.size(), block_ranges(bytes)};
  const SafetensorsHeader header = parse_safetensors_header(bytes, path, ErrorKind::kCheckpoint);
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : header.entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  ManifestFile out{bytes.size(), {{"", 0, header.data_offset, crc32c(bytes.first(header.data_offset))}}};
  for (const SafetensorsEntry* entry : order) {
    const std::uint64_t offset = header.data_offset + entry->begin;
    out.ranges.push_back({entry->name, offset, entry->nbytes(), crc32c(bytes.subspan(offset, entry->nbytes()))});
  }
  return out;
}

Manifest describe_directory(const fs::path& directory) {
  Manifest manifest;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file() || it->is_symlink()) continue;
    const std::string path = it->path().lexically_relative(directory).generic_string();
    if (path == kManifestName) continue;
    ManifestFile file = describe_file(it->path());
    manifest.add_file(path, file.nbytes, std::move(file.ranges));
  }
  if (error) fail_system(ErrorKind::kCheckpoint, directory, "list", error.value());
  return manifest;
}

std::string Damage::describe() const {
  return fmt::format("{} ({}): {}", file, describe_range(range, offset, nbytes), reason);
}

std::vector<Damage> verify_file(const Manifest& manifest, const fs::path& directory, std::string_view path,
                                MissingFiles missing) {
  const ManifestFile* const listed = manifest.find(path);
  if (listed == nullptr) return {};
  const auto whole_file = [&](std::string reason) {
    return std::vector<Damage>{{std::string(path), "", 0, listed->nbytes, std::move(reason)}};
  };
  const fs::path full = directory / path;
  std::error_code error;
  if (!fs::exists(full, error) && !error) {
    if (missing == MissingFiles::kIgnored) return {};
    return whole_file("is missing");
  }
  std::vector<Damage> damages;
  try {
    const MappedFile file(full);
    if (file.bytes().size() != listed->nbytes) return whole_file(fault_of_length(file.bytes().size(), listed->nbytes));
    for (const StoredRange& range : listed->ranges)
      if (auto fault = fault_of(range, file.bytes()))
        damages.push_back({std::string(path), range.name, range.offset, range.nbytes, std::move(*fault)});
  } catch (const Error& unreadable) {
    return whole_file(unreadable.what());
  }
  return damages;
}

std::vector<Damage> verify_all(const Manifest& manifest, const fs::path& directory, MissingFiles missing) {
  std::vector<Damage> damages;
  for (const auto& [path, file] : manifest.files()) {
    auto found = verify_file(manifest, directory, path, missing);
    std::move(found.begin(), found.end(), std::back_inserter(damages));
  }
  return damages;
}

RangeVerifier::RangeVerifier(const ManifestFile* file, fs::path path)
    : file_(file), path_(std::move(path)), checked_(file == nullptr ? 0 : file->ranges.size()) {}

void RangeVerifier::require(std::span<const std::byte> whole, std::uint64_t offset, std::uint64_t nbytes) {
  if (file_ == nullptr) return;
  const auto refuse = [this](std::string_view what) {
    fail(ErrorKind::kCheckpoint,
         "{}: {}. The file is damaged: copy the checkpoint again. If it was changed on purpose, "
         "accept it with lerobot-checkpoint seal.",
         path_.string(), what);
  };
  if (whole.size() != file_->nbytes) refuse(fault_of_length(whole.size(), file_->nbytes));
  const auto& ranges = file_->ranges;
  auto range = std::upper_bound(ranges.begin(), ranges.end(), offset,
                                [](std::uint64_t at, const StoredRange& r) { return at < r.offset + r.nbytes; });
  for (; range != ranges.end() && range->offset < offset + nbytes; ++range) {
    const auto index = static_cast<std::size_t>(range - ranges.begin());
    if (checked_[index]) continue;
    if (const auto fault = fault_of(*range, whole))
      refuse(fmt::format("{}: {}", describe_range(range->name, range->offset, range->nbytes), *fault));
    checked_[index] = true;
  }
}

}  // namespace lerobot::formats
