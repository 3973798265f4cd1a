#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "formats/dcp_globals.hpp"
#include "formats/pickle_emitter.hpp"
#include "lerobot/formats/dcp_metadata.hpp"

namespace lerobot::formats {
namespace {

// Writes the pickle of torch's Metadata object directly: what is used often is remembered once and recalled.
class MetadataWriter {
 public:
  explicit MetadataWriter(const DcpMetadata& metadata) : metadata_(metadata) {}

  std::string write() {
    begin(dcp::kMetadata);
    out_.string("state_dict_metadata");
    write_entries();
    out_.string("planner_data");
    write_paths();
    out_.string("storage_data");
    write_storage();
    out_.string("storage_meta");
    out_.none();
    out_.string("version");
    out_.string("1.0.0");
    end();
    return out_.finish();
  }

 private:
  // An object whose state is a dict: begin(), then pairs of name and value, then end().
  void begin(const PickleGlobal& type) {
    global(type);
    out_.empty_tuple();
    out_.new_object();
    out_.empty_dict();
    out_.mark();
  }
  void end() {
    out_.set_items();
    out_.build();
  }

  void global(const PickleGlobal& type) {
    shared(&type, [&] { out_.global(type.module, type.name); });
  }
  void name(std::string_view text) {
    shared(text.data(), [&] { out_.string(text); });
  }

  // Writes a value at its first use, recalls it later. `identity` is an address that stands for the value.
  template <typename Write>
  void shared(const void* identity, Write&& write) {
    if (const auto found = memo_.find(identity); found != memo_.end()) {
      out_.recall(found->second);
    } else {
      write();
      memo_.emplace(identity, out_.memoize());
    }
  }

  void tuple_of(std::span<const std::int64_t> numbers) {
    if (numbers.size() > 3) out_.mark();
    for (const std::int64_t number : numbers) out_.integer(number);
    out_.tuple(numbers.size());
  }

  void size(std::span<const std::int64_t> numbers) {
    global(dcp::kSize);
    tuple_of(numbers);
    out_.tuple(1);
    out_.reduce();
  }

  // Emits `count` elements in batches behind marks, so that a reader's stack stays small.
  template <typename WriteOne>
  void batches(std::size_t count, void (PickleEmitter::*close)(), WriteOne&& write_one) {
    constexpr std::size_t kBatch = 1000;
    for (std::size_t start = 0; start < count; start += kBatch) {
      out_.mark();
      for (std::size_t i = start; i < std::min(start + kBatch, count); ++i) write_one(i);
      (out_.*close)();
    }
  }

  void write_entries() {
    out_.empty_dict();
    batches(metadata_.entries().size(), &PickleEmitter::set_items, [&](std::size_t i) {
      const DcpEntry& entry = metadata_.entries()[i];
      name(entry.key);
      if (const DcpTensor* const tensor = entry.tensor()) {
        write_tensor(*tensor);
      } else {
        global(dcp::kBytes);
        out_.empty_tuple();
        out_.new_object();
      }
    });
  }

  void write_tensor(const DcpTensor& tensor) {
    begin(dcp::kTensor);
    name(kProperties);
    global(dcp::kProperties);
    out_.empty_tuple();
    out_.new_object();
    // Five elements: torch 2.11 refuses the six that 2.15 writes.
    out_.mark();
    const DTypeInfo& dtype = info(tensor.dtype());
    shared(&dtype, [&] { out_.global("torch", dtype.torch); });
    shared(&kStrided, [&] {
      global(dcp::kLayout);
      out_.string(kStrided);
      out_.tuple(1);
      out_.reduce();
    });
    out_.boolean(false);
    shared(&dcp::kMemoryFormat.name, [&] {
      global(dcp::kMemoryFormat);
      out_.integer(0);
      out_.tuple(1);
      out_.reduce();
    });
    out_.boolean(false);
    out_.tuple(5);
    out_.build();
    name(kSizeKey);
    size(tensor.shape());
    name(kChunks);
    out_.empty_list();
    batches(tensor.num_chunks(), &PickleEmitter::appends, [&](std::size_t chunk) {
      begin(dcp::kChunk);
      name(kOffsets);
      size(tensor.offsets(chunk));
      name(kSizes);
      size(tensor.sizes(chunk));
      end();
    });
    end();
  }

  void write_paths() {
    out_.empty_dict();
    batches(metadata_.entries().size(), &PickleEmitter::set_items, [&](std::size_t i) {
      const DcpEntry& entry = metadata_.entries()[i];
      name(entry.key);
      if (entry.path.size() > 3) out_.mark();
      for (const auto& part : entry.path) {
        if (const auto* const position = std::get_if<std::int64_t>(&part)) {
          out_.integer(*position);
        } else {
          out_.string(std::get<std::string>(part));
        }
      }
      out_.tuple(entry.path.size());
    });
  }

  void write_storage() {
    out_.empty_dict();
    for (const DcpEntry& entry : metadata_.entries()) {
      const DcpTensor* const tensor = entry.tensor();
      batches(tensor != nullptr ? tensor->num_chunks() : 1, &PickleEmitter::set_items, [&](std::size_t chunk) {
        begin(dcp::kIndex);
        name(kFqn);
        name(entry.key);
        name(kIndexKey);
        if (tensor != nullptr) {
          out_.integer(static_cast<std::int64_t>(chunk));
          name(kOffset);
          size(tensor->offsets(chunk));
        } else {
          out_.none();
        }
        end();
        write_location(tensor != nullptr ? tensor->location(chunk) : *entry.value());
      });
    }
  }

  void write_location(const DcpLocation& location) {
    begin(dcp::kStorageInfo);
    name(kRelativePath);
    name(metadata_.files().at(location.file));
    name(kOffset);
    out_.integer(static_cast<std::int64_t>(location.offset));
    name(kLength);
    out_.integer(static_cast<std::int64_t>(location.nbytes));
    end();
  }

  static constexpr std::string_view kProperties = "properties", kSizeKey = "size", kChunks = "chunks",
                                    kOffsets = "offsets", kSizes = "sizes", kFqn = "fqn", kIndexKey = "index",
                                    kOffset = "offset", kRelativePath = "relative_path", kLength = "length",
                                    kStrided = "torch.strided";

  const DcpMetadata& metadata_;
  PickleEmitter out_{4};
  std::unordered_map<const void*, std::uint32_t> memo_;
};

}  // namespace

std::string encode_dcp_metadata(const DcpMetadata& metadata) {
  for (const DcpEntry& entry : metadata.entries())
    if (const DcpTensor* const tensor = entry.tensor())
      if (const auto fault = tensor->coverage_fault())
        fail(ErrorKind::kCheckpoint, "Failed to validate global plan: \"{}\": {}.", entry.key, *fault);
  return MetadataWriter(metadata).write();
}

}  // namespace lerobot::formats
