#include "lerobot/formats/zip.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "formats/crc_tables.hpp"

namespace lerobot::formats {
namespace {

using Crc = CrcArithmetic<0xEDB88320>;

constexpr std::uint32_t kLocalHeader = 0x04034B50;
constexpr std::uint32_t kDescriptor = 0x08074B50;
constexpr std::uint32_t kDirectoryEntry = 0x02014B50;
constexpr std::uint32_t kEnd = 0x06054B50;
constexpr std::uint32_t kEnd64 = 0x06064B50;
constexpr std::uint32_t kEnd64Locator = 0x07064B50;
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kDirectoryEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kEnd64LocatorBytes = 20;

constexpr std::uint16_t kUtf8Names = 0x0800;
constexpr std::uint16_t kSumsFollow = 0x0008;
constexpr std::uint16_t kEncrypted = 0x0001;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kSizes64 = 0x0001;  // extra field with 64-bit sizes and offsets
constexpr std::uint16_t kPadding = 0x4246;  // "FB", torch's filler
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kMax32 = 0xFFFFFFFF;  // stands for "see the 64-bit field"
constexpr std::uint64_t kMax16 = 0xFFFF;

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> archive, std::string_view where, ErrorKind kind)
      : archive_(archive), where_(where), kind_(kind) {}

  std::vector<ZipEntry> read() {
    const Directory directory = find_directory();
    std::vector<ZipEntry> entries;
    std::set<std::string_view> names;
    std::uint64_t at = directory.offset;
    for (std::uint64_t i = 0; i < directory.num_entries; ++i) {
      entries.push_back(read_entry(at, directory.offset));
      if (!names.insert(entries.back().name).second)
        refuse(fmt::format("entry \"{}\" appears twice", entries.back().name));
    }
    return entries;
  }

 private:
  struct Directory {
    std::uint64_t offset, num_entries;
  };

  [[noreturn]] void refuse(std::string_view reason) const {
    fail(kind_, "{}: not a readable zip archive: {}.", where_, reason);
  }

  template <typename Number>
  Number get(std::uint64_t offset) const {
    if (offset > archive_.size() || archive_.size() - offset < sizeof(Number))
      refuse(fmt::format("it is cut at byte {} of {}", archive_.size(), offset));
    Number value{};
    std::memcpy(&value, archive_.data() + offset, sizeof(value));
    return value;
  }

  std::span<const std::byte> view(std::uint64_t offset, std::uint64_t nbytes, std::string_view what) const {
    if (offset > archive_.size() || nbytes > archive_.size() - offset)
      refuse(fmt::format("{} has {} bytes at {}, the archive {}", what, nbytes, offset, archive_.size()));
    return archive_.subspan(offset, nbytes);
  }

  // The end record stands at the end, with a comment of up to 65,535 bytes behind it.
  std::uint64_t find_end() const {
    if (archive_.size() < kEndBytes) refuse(fmt::format("{} bytes are too few", archive_.size()));
    const std::uint64_t last = archive_.size() - kEndBytes;
    for (std::uint64_t back = 0; back <= std::min<std::uint64_t>(last, kMax16); ++back)
      if (get<std::uint32_t>(last - back) == kEnd && get<std::uint16_t>(last - back + 20) == back) return last - back;
    refuse("its end record is missing, so it is cut or is something else");
  }

  Directory find_directory() const {
    const std::uint64_t end = find_end();
    std::uint64_t num_entries = get<std::uint16_t>(end + 10);
    std::uint64_t nbytes = get<std::uint32_t>(end + 12);
    std::uint64_t offset = get<std::uint32_t>(end + 16);
    std::uint64_t limit = end;
    if (num_entries == kMax16 || nbytes == kMax32 || offset == kMax32) {
      if (end < kEnd64LocatorBytes || get<std::uint32_t>(end - kEnd64LocatorBytes) != kEnd64Locator)
        refuse("its 64-bit end record is missing");
      limit = get<std::uint64_t>(end - kEnd64LocatorBytes + 8);
      if (limit > end || get<std::uint32_t>(limit) != kEnd64) refuse("its 64-bit end record is missing");
      num_entries = get<std::uint64_t>(limit + 32);
      nbytes = get<std::uint64_t>(limit + 40);
      offset = get<std::uint64_t>(limit + 48);
    }
    if (offset > limit || nbytes > limit - offset)
      refuse(fmt::format("its directory has {} bytes at {}, the archive {}", nbytes, offset, archive_.size()));
    if (num_entries > nbytes / kDirectoryEntryBytes)
      refuse(fmt::format("its directory of {} bytes cannot have {} entries", nbytes, num_entries));
    return {offset, num_entries};
  }

  ZipEntry read_entry(std::uint64_t& at, std::uint64_t data_end) const {
    if (get<std::uint32_t>(at) != kDirectoryEntry) refuse(fmt::format("byte {} is no directory entry", at));
    const auto flags = get<std::uint16_t>(at + 8);
    const auto method = get<std::uint16_t>(at + 10);
    std::uint64_t packed = get<std::uint32_t>(at + 20);
    std::uint64_t nbytes = get<std::uint32_t>(at + 24);
    const std::uint64_t name_nbytes = get<std::uint16_t>(at + 28);
    const std::uint64_t extra_nbytes = get<std::uint16_t>(at + 30);
    const std::uint64_t comment_nbytes = get<std::uint16_t>(at + 32);
    std::uint64_t header = get<std::uint32_t>(at + 42);
    const auto name_bytes = view(at + kDirectoryEntryBytes, name_nbytes, "a name");
    const std::string_view name(reinterpret_cast<const char*>(name_bytes.data()), name_bytes.size());
    const auto shown = [&] { return fmt::format("entry \"{}\"", printable(name)); };
    if ((flags & kEncrypted) != 0) refuse(shown() + " is encrypted");
    if (method != kStored) refuse(fmt::format("{} is compressed (method {}); expected it stored", shown(), method));
    read_sizes64(at + kDirectoryEntryBytes + name_nbytes, extra_nbytes, {&nbytes, &packed, &header});
    if (packed != nbytes) refuse(fmt::format("{} is stored, but its lengths are {} and {}", shown(), packed, nbytes));

    if (get<std::uint32_t>(header) != kLocalHeader) refuse(fmt::format("{} has no header at {}", shown(), header));
    const std::uint64_t local_name = get<std::uint16_t>(header + 26);
    const std::uint64_t data = header + kLocalHeaderBytes + local_name + get<std::uint16_t>(header + 28);
    const auto local_name_bytes = view(header + kLocalHeaderBytes, local_name, "a name");
    if (!std::equal(local_name_bytes.begin(), local_name_bytes.end(), name_bytes.begin(), name_bytes.end()))
      refuse(shown() + " has another name in its header");
    if (data > data_end || nbytes > data_end - data)
      refuse(fmt::format("{} has {} bytes at {}, but the directory begins at {}", shown(), nbytes, data, data_end));
    const ZipEntry entry{name, archive_.subspan(data, nbytes), get<std::uint32_t>(at + 16)};
    at += kDirectoryEntryBytes + name_nbytes + extra_nbytes + comment_nbytes;
    return entry;
  }

  // Fields that hold the largest 32-bit number have their value in the extra field, in this order.
  void read_sizes64(std::uint64_t at, std::uint64_t nbytes, std::initializer_list<std::uint64_t*> fields) const {
    const std::uint64_t end = at + nbytes;
    while (at + 4 <= end) {
      const auto tag = get<std::uint16_t>(at);
      std::uint64_t field_end = at + 4 + get<std::uint16_t>(at + 2);
      at += 4;
      if (field_end > end) refuse("an extra field leaves its entry");
      if (tag == kSizes64) {
        for (std::uint64_t* field : fields) {
          if (*field != kMax32) continue;
          if (field_end - at < 8) refuse("a 64-bit length is missing");
          *field = get<std::uint64_t>(at);
          at += 8;
        }
      }
      at = field_end;
    }
  }

  static std::string printable(std::string_view name) {
    std::string text(name.substr(0, 200));
    for (char& c : text)
      if (c < 0x20 || c > 0x7E) c = '?';
    return text;
  }

  std::span<const std::byte> archive_;
  std::string_view where_;
  ErrorKind kind_;
};

template <typename Number>
void put(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::uint32_t capped32(std::uint64_t value) { return static_cast<std::uint32_t>(std::min(value, kMax32)); }
std::uint16_t u16(std::size_t value) { return static_cast<std::uint16_t>(value); }

}  // namespace

std::vector<ZipEntry> read_stored_zip(std::span<const std::byte> archive, std::string_view where, ErrorKind kind) {
  return ZipReader(archive, where, kind).read();
}

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  return ~Crc::advance(~before, bytes.data(), bytes.size());
}

std::uint32_t crc32_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_nbytes) {
  return Crc::multiply(first, Crc::power_of_bytes(second_nbytes)) ^ second;
}

void ZipBuilder::local_header(const Entry& entry) {
  const bool streamed = (entry.flags & kSumsFollow) != 0;
  const bool large = entry.nbytes >= kMax32;
  std::string extra;
  if (large) {
    put(extra, kSizes64);
    put(extra, std::uint16_t{16});
    put(extra, streamed ? 0 : entry.nbytes);
    put(extra, streamed ? 0 : entry.nbytes);
  }
  const std::uint64_t unpadded = position() + kLocalHeaderBytes + entry.name.size() + extra.size() + 4;
  const std::size_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  put(extra, kPadding);
  put(extra, u16(padding));
  extra.append(padding, 'Z');

  put(out_, kLocalHeader);
  put(out_, u16(large ? 45 : 20));  // version of the format that a reader must know
  put(out_, entry.flags);
  put(out_, kStored);
  put(out_, std::uint32_t{0});  // date and time
  put(out_, streamed ? 0 : entry.crc32);
  const std::uint32_t size = large ? static_cast<std::uint32_t>(kMax32) : streamed ? 0 : capped32(entry.nbytes);
  put(out_, size);
  put(out_, size);
  put(out_, u16(entry.name.size()));
  put(out_, u16(extra.size()));
  out_ += entry.name;
  out_ += extra;
}

void ZipBuilder::add(std::string_view name, std::string_view data) {
  Entry entry{std::string(name), position(), data.size(), crc32(std::as_bytes(std::span(data))), kUtf8Names};
  local_header(entry);
  out_ += data;
  entries_.push_back(std::move(entry));
}

void ZipBuilder::begin_stream(std::string_view name, std::uint64_t nbytes) {
  const auto flags = static_cast<std::uint16_t>(nbytes == 0 ? kUtf8Names : kUtf8Names | kSumsFollow);
  entries_.push_back({std::string(name), position(), nbytes, 0, flags});
  local_header(entries_.back());
}

void ZipBuilder::end_stream(std::uint32_t sum) {
  Entry& entry = entries_.back();
  if (!out_.empty()) fail(ErrorKind::kInternal, "zip: the header of \"{}\" was not taken before its data.", entry.name);
  taken_ += entry.nbytes;
  entry.crc32 = sum;
  if (entry.nbytes == 0) return;
  put(out_, kDescriptor);
  put(out_, sum);
  for (int i = 0; i < 2; ++i) {
    if (entry.nbytes >= kMax32) {
      put(out_, entry.nbytes);
    } else {
      put(out_, capped32(entry.nbytes));
    }
  }
}

void ZipBuilder::finish() {
  const std::uint64_t begin = position();
  for (const Entry& entry : entries_) {
    std::string extra;
    if (entry.nbytes >= kMax32) {
      put(extra, entry.nbytes);
      put(extra, entry.nbytes);
    }
    if (entry.offset >= kMax32) put(extra, entry.offset);
    const bool large = !extra.empty();
    put(out_, kDirectoryEntry);
    put(out_, u16(large ? 45 : 20));
    put(out_, u16(large ? 45 : 20));
    put(out_, entry.flags);
    put(out_, kStored);
    put(out_, std::uint32_t{0});
    put(out_, entry.crc32);
    put(out_, capped32(entry.nbytes));
    put(out_, capped32(entry.nbytes));
    put(out_, u16(entry.name.size()));
    put(out_, u16(large ? extra.size() + 4 : 0));
    put(out_, std::uint16_t{0});  // comment
    put(out_, std::uint16_t{0});  // part of the archive
    put(out_, std::uint16_t{0});  // attributes
    put(out_, std::uint32_t{0});
    put(out_, capped32(entry.offset));
    out_ += entry.name;
    if (large) {
      put(out_, kSizes64);
      put(out_, u16(extra.size()));
      out_ += extra;
    }
  }
  const std::uint64_t end = position();
  if (begin >= kMax32) {
    put(out_, kEnd64);
    put(out_, std::uint64_t{kEnd64Bytes - 12});
    put(out_, u16(45));
    put(out_, u16(45));
    put(out_, std::uint64_t{0});  // this part, the directory's part
    put(out_, std::uint64_t{entries_.size()});
    put(out_, std::uint64_t{entries_.size()});
    put(out_, end - begin);
    put(out_, begin);
    put(out_, kEnd64Locator);
    put(out_, std::uint32_t{0});
    put(out_, end);
    put(out_, std::uint32_t{1});
  }
  put(out_, kEnd);
  put(out_, std::uint32_t{0});
  put(out_, u16(entries_.size()));
  put(out_, u16(entries_.size()));
  put(out_, static_cast<std::uint32_t>(end - begin));
  put(out_, capped32(begin));
  put(out_, std::uint16_t{0});
}

std::string ZipBuilder::take() {
  taken_ += out_.size();
  return std::exchange(out_, {});
}

}  // namespace lerobot::formats
