#include "lerobot/formats/dcp_metadata.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include "formats/relative_path.hpp"
#include "lerobot/formats/atomic_file.hpp"

namespace lerobot::formats {
namespace {

bool overlap(const DcpTensor& tensor, std::size_t a, std::size_t b) {
  const auto first = tensor.offsets(a), first_sizes = tensor.sizes(a);
  const auto second = tensor.offsets(b), second_sizes = tensor.sizes(b);
  for (std::size_t d = 0; d < first.size(); ++d)
    if (first[d] + first_sizes[d] <= second[d] || second[d] + second_sizes[d] <= first[d]) return false;
  return true;
}

std::uint64_t numel(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, [](std::uint64_t product, std::int64_t size) {
    return product * static_cast<std::uint64_t>(size);
  });
}

// The dimension along which the chunks begin at the most places: a sweep along it meets the fewest neighbours.
std::size_t sweep_dimension(const DcpTensor& tensor, const std::vector<std::size_t>& chunks) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t d = 0; d < tensor.shape().size(); ++d) {
    std::vector<std::int64_t> begins;
    begins.reserve(chunks.size());
    for (const std::size_t chunk : chunks) begins.push_back(tensor.offsets(chunk)[d]);
    std::sort(begins.begin(), begins.end());
    const auto distinct = static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
    if (distinct > most) {
      most = distinct;
      best = d;
    }
  }
  return best;
}

}  // namespace

void DcpTensor::add_chunk(std::span<const std::int64_t> chunk_offsets, std::span<const std::int64_t> chunk_sizes,
                          DcpLocation location) {
  if (chunk_offsets.size() != shape_.size() || chunk_sizes.size() != shape_.size())
    fail(ErrorKind::kInternal, "a chunk of {} and {} dimensions for a tensor of {}.", chunk_offsets.size(),
         chunk_sizes.size(), shape_.size());
  bounds_.insert(bounds_.end(), chunk_offsets.begin(), chunk_offsets.end());
  bounds_.insert(bounds_.end(), chunk_sizes.begin(), chunk_sizes.end());
  locations_.push_back(location);
}

std::optional<std::string> DcpTensor::coverage_fault() const {
  const auto shown = [this](std::size_t chunk) {
    return fmt::format("[{}] of size [{}]", fmt::join(offsets(chunk), ", "), fmt::join(sizes(chunk), ", "));
  };
  std::vector<std::size_t> chunks;  // those that hold anything
  std::uint64_t covered = 0;
  for (std::size_t chunk = 0; chunk < num_chunks(); ++chunk) {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const std::int64_t begin = offsets(chunk)[d];
      const std::int64_t size = sizes(chunk)[d];
      if (begin < 0 || size < 0 || begin > shape_[d] || size > shape_[d] - begin)
        return fmt::format("chunk {} leaves the shape [{}]", shown(chunk), fmt::join(shape_, ", "));
    }
    covered += numel(sizes(chunk));
    if (numel(sizes(chunk)) != 0) chunks.push_back(chunk);
  }
  const std::size_t axis = sweep_dimension(*this, chunks);
  if (!shape_.empty())
    std::sort(chunks.begin(), chunks.end(),
              [&](std::size_t a, std::size_t b) { return offsets(a)[axis] < offsets(b)[axis]; });
  std::vector<std::size_t> open;  // chunks that reach to where the sweep is
  for (const std::size_t chunk : chunks) {
    if (!shape_.empty()) {
      const std::int64_t at = offsets(chunk)[axis];
      std::erase_if(open, [&](std::size_t other) { return offsets(other)[axis] + sizes(other)[axis] <= at; });
    }
    for (const std::size_t other : open)
      if (overlap(*this, other, chunk)) return fmt::format("chunks {} and {} overlap", shown(other), shown(chunk));
    open.push_back(chunk);
  }
  if (covered != numel(shape_))
    return fmt::format("its chunks hold {} elements, the shape [{}] has {}", covered, fmt::join(shape_, ", "),
                       numel(shape_));
  return std::nullopt;
}

std::uint32_t DcpMetadata::file_number(std::string_view relative_path) {
  if (const auto found = file_numbers_.find(relative_path); found != file_numbers_.end()) return found->second;
  if (!stays_inside(relative_path))
    fail(ErrorKind::kCheckpoint, "distributed checkpoint: the data file \"{}\" is not inside its directory.",
         relative_path);
  const auto number = static_cast<std::uint32_t>(files_.size());
  files_.emplace_back(relative_path);
  file_numbers_.emplace(relative_path, number);
  return number;
}

DcpEntry& DcpMetadata::add(DcpEntry entry) {
  if (!by_key_.emplace(entry.key, entries_.size()).second)
    fail(ErrorKind::kCheckpoint, "distributed checkpoint: the key \"{}\" appears twice.", entry.key);
  return entries_.emplace_back(std::move(entry));
}

const DcpEntry* DcpMetadata::find(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &entries_[found->second];
}

DcpEntry* DcpMetadata::find(std::string_view key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &entries_[found->second];
}

DcpMetadata read_dcp_metadata(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kDcpMetadataName;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error)
    fail(ErrorKind::kCheckpoint,
         "{}: metadata is None: there is no such file, so {} is not a complete distributed "
         "checkpoint.",
         path.string(), directory.string());
  const MappedFile file(path);
  return parse_dcp_metadata(file.bytes(), path.string());
}

void write_dcp_metadata(const DcpMetadata& metadata, const std::filesystem::path& directory) {
  write_file_atomically(directory / kDcpMetadataName, encode_dcp_metadata(metadata));
}

std::span<const std::byte> dcp_item(const MappedFile& file, const DcpLocation& location, std::string_view key) {
  const std::uint64_t nbytes = file.bytes().size();
  if (location.offset > nbytes || location.nbytes > nbytes - location.offset)
    fail(ErrorKind::kCheckpoint,
         "{}: \"{}\" has {} bytes at {}, but the file has {}. The copy is incomplete; copy the "
         "checkpoint again.",
         file.path().string(), key, location.nbytes, location.offset, nbytes);
  return file.bytes().subspan(location.offset, location.nbytes);
}

}  // namespace lerobot::formats
