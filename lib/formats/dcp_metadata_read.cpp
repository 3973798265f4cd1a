#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "formats/dcp_globals.hpp"
#include "formats/tensor_bytes.hpp"
#include "lerobot/formats/dcp_metadata.hpp"
#include "lerobot/formats/pickle.hpp"

namespace lerobot::formats {
namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

class MetadataReader {
 public:
  MetadataReader(const PickleDocument& document)
      : document_(document), where_(document.where()), chunk_budget_(document.nbytes() / kLeastBytesPerChunk) {}

  DcpMetadata read() {
    const PickleRef state = state_of(document_.root(), dcp::kMetadata, "the file");
    read_entries(state.at("state_dict_metadata"));
    if (const auto paths = state.find("planner_data"); paths && !paths->is_none()) read_paths(*paths);
    const auto storage = state.find("storage_data");
    if (!storage || storage->is_none()) refuse("it has no storage_data");
    read_storage(*storage);
    for (const DcpEntry& entry : metadata_.entries()) require_locations(entry);
    return std::move(metadata_);
  }

 private:
  // A chunk takes more bytes than this in any file. Without the bound, a list of chunks that many tensors refer to
  // would grow with the square of the file.
  static constexpr std::size_t kLeastBytesPerChunk = 8;

  [[noreturn]] void refuse(std::string_view reason) const { fail(ErrorKind::kCheckpoint, "{}: {}.", where_, reason); }

  PickleRef state_of(PickleRef object, const PickleGlobal& type, std::string_view what) const {
    if (object.is_object_of(type))
      if (const auto state = object.state()) return *state;
    refuse(fmt::format("{} is not a {} with a state", what, type.name));
  }

  void numbers(PickleRef tuple, std::string_view key, std::vector<std::int64_t>& out) const {
    out.clear();
    if (tuple.size() > kMaxDims)
      refuse(fmt::format("\"{}\" has {} dimensions; at most {} are read", key, tuple.size(), kMaxDims));
    for (std::size_t d = 0; d < tuple.size(); ++d) {
      out.push_back(tuple[d].integer());
      if (out.back() < 0) refuse(fmt::format("\"{}\" has {} among its sizes and offsets", key, out.back()));
    }
  }

  void read_entries(PickleRef dict) {
    for (std::size_t i = 0; i < dict.size(); ++i) {
      const std::string_view key = dict.key(i).text();
      if (metadata_.find(key) != nullptr) refuse(fmt::format("\"{}\" appears twice", key));
      const PickleRef value = dict.value(i);
      if (value.is_object_of(dcp::kBytes)) {
        metadata_.add({std::string(key), {}, DcpLocation{kNowhere, 0, 0}});
      } else {
        metadata_.add(
            {std::string(key), {}, read_tensor(state_of(value, dcp::kTensor, fmt::format("\"{}\"", key)), key)});
      }
    }
  }

  DcpTensor read_tensor(PickleRef state, std::string_view key) {
    // torch 2.11: dtype, layout, requires_grad, memory format, pinned memory. torch 2.15 adds strides, which nobody
    // reads.
    const PickleRef properties =
        state_of(state.at("properties"), dcp::kProperties, fmt::format("the properties of \"{}\"", key));
    if (properties.size() < 5) refuse(fmt::format("\"{}\" has {} properties; expected 5 or 6", key, properties.size()));
    const auto dtype =
        properties[0].global().module == "torch" ? dtype_from_torch(properties[0].global().name) : std::nullopt;
    if (!dtype)
      refuse(
          fmt::format("\"{}\" has the dtype {}.{}", key, properties[0].global().module, properties[0].global().name));
    if (!properties[1].is_object_of(dcp::kLayout) || properties[1].arguments()[0].text() != "torch.strided")
      refuse(fmt::format("\"{}\" is not a strided tensor", key));
    std::vector<std::int64_t> shape;
    numbers(state.at("size"), key, shape);
    if (!tensor_nbytes(*dtype, shape))
      refuse(fmt::format("\"{}\" has shape [{}], which is larger than memory can be", key, fmt::join(shape, ", ")));
    DcpTensor tensor(*dtype, std::move(shape));
    const PickleRef chunks = state.at("chunks");
    if (chunks.size() > chunk_budget_) refuse(fmt::format("\"{}\" has more chunks than the file can describe", key));
    chunk_budget_ -= chunks.size();
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const PickleRef chunk = state_of(chunks[i], dcp::kChunk, fmt::format("a chunk of \"{}\"", key));
      numbers(chunk.at("offsets"), key, offsets_);
      numbers(chunk.at("sizes"), key, sizes_);
      check_chunk(tensor, key);
      tensor.add_chunk(offsets_, sizes_, {kNowhere, 0, 0});
    }
    return tensor;
  }

  void check_chunk(const DcpTensor& tensor, std::string_view key) const {
    const auto shape = tensor.shape();
    bool inside = offsets_.size() == shape.size() && sizes_.size() == shape.size();
    for (std::size_t d = 0; inside && d < shape.size(); ++d)
      inside = offsets_[d] <= shape[d] && sizes_[d] <= shape[d] - offsets_[d];
    if (!inside)
      refuse(fmt::format("\"{}\" of shape [{}] has a chunk at [{}] of size [{}]", key, fmt::join(shape, ", "),
                         fmt::join(offsets_, ", "), fmt::join(sizes_, ", ")));
  }

  void read_paths(PickleRef dict) {
    std::size_t budget = 16 * document_.nbytes();  // paths may share their names, but not without end
    for (std::size_t i = 0; i < dict.size(); ++i) {
      DcpEntry* const entry = metadata_.find(dict.key(i).text());
      if (entry == nullptr) continue;
      const PickleRef path = dict.value(i);
      entry->path.clear();
      for (std::size_t k = 0; k < path.size(); ++k) {
        const std::size_t nbytes = path[k].kind() == PickleKind::kString ? path[k].text().size() + 1 : 1;
        if (nbytes > budget) refuse("its paths are longer than the file can describe");
        budget -= nbytes;
        if (path[k].kind() == PickleKind::kInt) {
          entry->path.emplace_back(path[k].integer());
        } else {
          entry->path.emplace_back(std::string(path[k].text()));
        }
      }
    }
  }

  void read_storage(PickleRef dict) {
    for (std::size_t i = 0; i < dict.size(); ++i) {
      const PickleRef index = state_of(dict.key(i), dcp::kIndex, "a key of storage_data");
      const std::string_view key = index.at("fqn").text();
      DcpEntry* const entry = metadata_.find(key);
      if (entry == nullptr) refuse(fmt::format("storage_data has \"{}\", which state_dict_metadata has not", key));
      const DcpLocation location = read_location(dict.value(i), key);
      if (auto* const value = std::get_if<DcpLocation>(&entry->content)) {
        if (value->file != kNowhere) refuse(fmt::format("storage_data has \"{}\" twice", key));
        *value = location;
        continue;
      }
      auto& tensor = std::get<DcpTensor>(entry->content);
      const auto offset = index.find("offset");
      if (!offset || offset->is_none()) refuse(fmt::format("storage_data has no offset for the tensor \"{}\"", key));
      numbers(*offset, key, offsets_);
      const std::size_t chunk = find_chunk(tensor, key, index);
      if (tensor.location(chunk).file != kNowhere)
        refuse(fmt::format("storage_data has \"{}\" at [{}] twice", key, fmt::join(offsets_, ", ")));
      tensor.set_location(chunk, location);
    }
  }

  DcpLocation read_location(PickleRef info, std::string_view key) {
    const PickleRef state = state_of(info, dcp::kStorageInfo, fmt::format("the storage of \"{}\"", key));
    if (const auto transforms = state.find("transform_descriptors");
        transforms && !transforms->is_none() && transforms->size() != 0)
      refuse(fmt::format("\"{}\" is stored with an unsupported stream transform", key));
    const std::int64_t offset = state.at("offset").integer();
    const std::int64_t nbytes = state.at("length").integer();
    if (offset < 0 || nbytes < 0 || nbytes > std::numeric_limits<std::int64_t>::max() - offset)
      refuse(fmt::format("\"{}\" has {} bytes at {}", key, nbytes, offset));
    return {metadata_.file_number(state.at("relative_path").text()), static_cast<std::uint64_t>(offset),
            static_cast<std::uint64_t>(nbytes)};
  }

  // The chunk that begins at offsets_. torch stores its position beside the offsets, as a hint that may be absent or
  // old.
  std::size_t find_chunk(const DcpTensor& tensor, std::string_view key, PickleRef index) {
    const auto begins_here = [&](std::size_t chunk) {
      return std::equal(offsets_.begin(), offsets_.end(), tensor.offsets(chunk).begin(), tensor.offsets(chunk).end());
    };
    if (const auto hint = index.find("index"); hint && hint->kind() == PickleKind::kInt) {
      const auto chunk = static_cast<std::uint64_t>(hint->integer());
      if (chunk < tensor.num_chunks() && begins_here(chunk)) return chunk;
    }
    auto& sorted = by_offsets_[&tensor];
    if (sorted.empty())
      for (std::size_t chunk = 0; chunk < tensor.num_chunks(); ++chunk)
        sorted.emplace(std::vector(tensor.offsets(chunk).begin(), tensor.offsets(chunk).end()), chunk);
    const auto found = sorted.find(offsets_);
    if (found == sorted.end())
      refuse(fmt::format("storage_data has \"{}\" at [{}], where no chunk begins", key, fmt::join(offsets_, ", ")));
    return found->second;
  }

  void require_locations(const DcpEntry& entry) const {
    if (const auto* const value = entry.value(); value != nullptr && value->file == kNowhere)
      refuse(fmt::format("storage_data has no place for \"{}\"", entry.key));
    if (const auto* const tensor = entry.tensor(); tensor != nullptr)
      for (std::size_t chunk = 0; chunk < tensor->num_chunks(); ++chunk)
        if (tensor->location(chunk).file == kNowhere)
          refuse(fmt::format("storage_data has no place for \"{}\" at [{}]", entry.key,
                             fmt::join(tensor->offsets(chunk), ", ")));
  }

  const PickleDocument& document_;
  const std::string& where_;
  std::size_t chunk_budget_;
  DcpMetadata metadata_;
  std::vector<std::int64_t> offsets_;  // of the chunk in hand
  std::vector<std::int64_t> sizes_;
  std::unordered_map<const DcpTensor*, std::map<std::vector<std::int64_t>, std::size_t>> by_offsets_;
};

}  // namespace

DcpMetadata parse_dcp_metadata(std::span<const std::byte> bytes, const std::string& where) {
  const PickleDocument document = PickleDocument::parse(bytes, dcp::kAllowed, where);
  return MetadataReader(document).read();
}

}  // namespace lerobot::formats
