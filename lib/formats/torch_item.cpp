#include "lerobot/formats/torch_item.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "formats/pickle_emitter.hpp"
#include "formats/tensor_bytes.hpp"
#include "lerobot/formats/zip.hpp"

namespace lerobot::formats {
namespace {

constexpr std::string_view kPickleName = "data.pkl";

struct StorageName {
  std::string_view name;
  DType dtype;
};
constexpr std::array kStorages{
    StorageName{"FloatStorage", DType::kF32},        StorageName{"DoubleStorage", DType::kF64},
    StorageName{"HalfStorage", DType::kF16},         StorageName{"BFloat16Storage", DType::kBF16},
    StorageName{"LongStorage", DType::kI64},         StorageName{"IntStorage", DType::kI32},
    StorageName{"ShortStorage", DType::kI16},        StorageName{"CharStorage", DType::kI8},
    StorageName{"ByteStorage", DType::kU8},          StorageName{"BoolStorage", DType::kBool},
    StorageName{"ComplexFloatStorage", DType::kC64},
};

constexpr PickleGlobal kRebuildV2{"torch._utils", "_rebuild_tensor_v2"};
constexpr PickleGlobal kRebuildV3{"torch._utils", "_rebuild_tensor_v3"};
constexpr PickleGlobal kRebuildParameter{"torch._utils", "_rebuild_parameter"};
constexpr PickleGlobal kUntypedStorage{"torch.storage", "UntypedStorage"};
constexpr PickleGlobal kOrderedDict{"collections", "OrderedDict"};

constexpr auto kAllowed = [] {
  std::array<PickleGlobal, 6 + kStorages.size() + kDTypes.size()> all{};
  std::size_t n = 0;
  for (const PickleGlobal& global : {kRebuildV2, kRebuildV3, kRebuildParameter, kUntypedStorage, kOrderedDict})
    all[n++] = global;
  all[n++] = {"torch", "Size", true};
  for (const StorageName& storage : kStorages) all[n++] = {"torch", storage.name};
  for (const DTypeInfo& dtype : kDTypes) all[n++] = {"torch", dtype.torch};
  return all;
}();

std::optional<std::string_view> storage_of(DType dtype) {
  for (const StorageName& storage : kStorages)
    if (storage.dtype == dtype) return storage.name;
  return std::nullopt;
}

// The archive of an item: all its names begin with the same folder, `archive` or another.
class ItemReader {
 public:
  ItemReader(std::span<const std::byte> item, std::string_view where, ErrorKind kind)
      : where_(where), kind_(kind), entries_(read_stored_zip(item, where, kind)) {
    for (const ZipEntry& entry : entries_) {
      const std::size_t slash = entry.name.find('/');
      if (slash != std::string_view::npos && entry.name.substr(slash + 1) == kPickleName)
        folder_ = entry.name.substr(0, slash + 1);
    }
    if (folder_.empty()) refuse("it has no data.pkl");
    if (const auto* order = find("byteorder"); order != nullptr && text(*order) != "little")
      refuse(fmt::format("its byte order is \"{}\"; expected little", text(*order)));
  }

  [[noreturn]] void refuse(std::string_view reason) const {
    fail(kind_, "{}: not a readable item: {}.", where_, reason);
  }

  [[nodiscard]] PickleDocument pickle() const {
    return PickleDocument::parse(find(kPickleName)->data, kAllowed, fmt::format("{}: data.pkl", where_), kind_);
  }

  [[nodiscard]] std::span<const std::byte> storage(std::string_view key) const {
    const ZipEntry* const entry = find(fmt::format("data/{}", key));
    if (entry == nullptr) refuse(fmt::format("it has no data/{}", key));
    return entry->data;
  }

 private:
  [[nodiscard]] const ZipEntry* find(std::string_view name) const {
    for (const ZipEntry& entry : entries_)
      if (entry.name.starts_with(folder_) && entry.name.substr(folder_.size()) == name) return &entry;
    return nullptr;
  }
  static std::string_view text(const ZipEntry& entry) {
    return {reinterpret_cast<const char*>(entry.data.data()), std::min<std::size_t>(entry.data.size(), 32)};
  }

  std::string_view where_;
  ErrorKind kind_;
  std::vector<ZipEntry> entries_;
  std::string_view folder_;
};

std::vector<std::int64_t> numbers(PickleRef tuple, std::string_view what, const ItemReader& item) {
  std::vector<std::int64_t> out;
  if (tuple.size() > kMaxDims)
    item.refuse(fmt::format("its {} has {} dimensions; at most {} are read", what, tuple.size(), kMaxDims));
  for (std::size_t i = 0; i < tuple.size(); ++i) {
    out.push_back(tuple[i].integer());
    if (out.back() < 0) item.refuse(fmt::format("its {} has {}", what, out.back()));
  }
  return out;
}

// The number of elements from the first to the last one of a strided tensor.
std::optional<std::uint64_t> extent(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t last = 0;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto steps = static_cast<std::uint64_t>(shape[d] - 1);
    const auto stride = static_cast<std::uint64_t>(strides[d]);
    if (stride != 0 && steps > (kMax - last) / stride) return std::nullopt;
    last += steps * stride;
  }
  return last + 1;
}

TorchTensor rebuild(PickleRef call, const ItemReader& item) {
  if (call.is_object_of(kRebuildParameter)) call = call.arguments()[0];
  const bool typed = call.is_object_of(kRebuildV2);
  if (!typed && !call.is_object_of(kRebuildV3)) item.refuse("it does not hold a tensor");
  const PickleRef arguments = call.arguments();
  const PickleRef storage = arguments[0].persistent_id();
  if (storage[0].text() != "storage")
    item.refuse(fmt::format("its tensor is in a \"{}\"; expected a storage", storage[0].text()));
  TorchTensor tensor;
  const PickleGlobal& type = storage[1].global();
  if (typed) {
    const auto found =
        std::find_if(kStorages.begin(), kStorages.end(), [&](const StorageName& s) { return s.name == type.name; });
    if (found == kStorages.end()) item.refuse(fmt::format("its storage is a {}.{}", type.module, type.name));
    tensor.dtype = found->dtype;
  } else {
    const PickleGlobal& dtype = arguments[6].global();
    const auto found = dtype_from_torch(dtype.name);
    if (!(type == kUntypedStorage) || !found) item.refuse(fmt::format("its dtype is {}.{}", dtype.module, dtype.name));
    tensor.dtype = *found;
  }
  tensor.shape = numbers(arguments[2], "shape", item);
  tensor.strides = numbers(arguments[3], "stride", item);
  if (tensor.shape.size() != tensor.strides.size()) item.refuse("its shape and its strides differ in length");

  const auto data = item.storage(storage[2].text());
  const std::uint64_t numel = data.size() / itemsize(tensor.dtype);
  const std::int64_t stored = storage[4].integer();
  const std::int64_t offset = arguments[1].integer();
  const auto needed = extent(tensor.shape, tensor.strides);
  // An untyped storage counts bytes, a typed one elements.
  if (stored < 0 || static_cast<std::uint64_t>(stored) != (typed ? numel : data.size()) ||
      data.size() % itemsize(tensor.dtype) != 0)
    item.refuse(fmt::format("its pickle speaks of a storage of {} {}, but data/{} has {} bytes", stored,
                            typed ? "elements" : "bytes", storage[2].text(), data.size()));
  if (offset < 0 || static_cast<std::uint64_t>(offset) > numel || !needed ||
      *needed > numel - static_cast<std::uint64_t>(offset) || !tensor_nbytes(tensor.dtype, tensor.shape))
    item.refuse(fmt::format("shape [{}] with strides [{}] at element {} leaves its storage of {} elements",
                            fmt::join(tensor.shape, ", "), fmt::join(tensor.strides, ", "), offset, numel));
  tensor.data =
      data.subspan(static_cast<std::uint64_t>(offset) * itemsize(tensor.dtype), *needed * itemsize(tensor.dtype));
  return tensor;
}

// The byte form that torch gives a contiguous tensor on the CPU.
std::string pickle_tensor(DType dtype, std::span<const std::int64_t> shape, std::uint64_t payload_nbytes) {
  const auto storage = storage_of(dtype);
  PickleEmitter out(2);
  const auto string = [&out](std::string_view text) {
    out.string(text);
    out.memoize();
  };
  const auto global = [&out](const PickleGlobal& type) {
    out.global(type.module, type.name);
    out.memoize();
  };
  const auto tuple = [&out](const std::vector<std::int64_t>& values) {
    if (values.size() > 3) out.mark();
    for (const std::int64_t value : values) out.integer(value);
    out.tuple(values.size());
    if (!values.empty()) out.memoize();
  };
  constexpr std::size_t kWithMark = 4;

  global(storage ? kRebuildV2 : kRebuildV3);
  out.mark();
  out.mark();
  string("storage");
  global(storage ? PickleGlobal{"torch", *storage} : kUntypedStorage);
  string("0");
  string("cpu");
  out.integer(static_cast<std::int64_t>(storage ? payload_nbytes / itemsize(dtype) : payload_nbytes));
  out.tuple(kWithMark);
  out.memoize();
  out.persistent_id();
  out.integer(0);
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<std::int64_t>(shape[d], 1);
  tuple({shape.begin(), shape.end()});
  tuple(strides);
  out.boolean(false);
  global(kOrderedDict);
  out.empty_tuple();
  out.reduce();
  out.memoize();
  if (!storage) global({"torch", info(dtype).torch});
  out.tuple(kWithMark);
  out.memoize();
  out.reduce();
  out.memoize();
  return out.finish();
}

}  // namespace

bool TorchTensor::is_contiguous() const {
  if (data.empty()) return true;
  std::int64_t expected = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

TorchTensor read_torch_tensor(std::span<const std::byte> item, std::string_view where, ErrorKind kind) {
  const ItemReader reader(item, where, kind);
  const PickleDocument document = reader.pickle();
  return rebuild(document.root(), reader);
}

PyValue read_torch_value(std::span<const std::byte> item, std::string_view where, ErrorKind kind) {
  const ItemReader reader(item, where, kind);
  const PickleDocument document = reader.pickle();
  return to_python(document.root());
}

TorchTensorFrame::TorchTensorFrame(DType dtype, std::span<const std::int64_t> shape) {
  const auto nbytes = tensor_nbytes(dtype, shape);
  if (!nbytes) fail(ErrorKind::kInternal, "a tensor of shape [{}] cannot be stored.", fmt::join(shape, ", "));
  payload_nbytes_ = *nbytes;
  pickle_ = pickle_tensor(dtype, shape, payload_nbytes_);
  ZipBuilder zip;
  zip.add("archive/data.pkl", pickle_);
  zip.begin_stream("archive/data/0", payload_nbytes_);
  head_ = zip.take();
  tail_nbytes_ = tail(0).size();
}

std::string TorchTensorFrame::tail(std::uint32_t payload_crc32) const {
  ZipBuilder zip;
  zip.add("archive/data.pkl", pickle_);
  zip.begin_stream("archive/data/0", payload_nbytes_);
  (void)zip.take();
  zip.end_stream(payload_crc32);
  zip.add("archive/version", "3\n");
  zip.finish();
  return zip.take();
}

std::string make_torch_value(const PyValue& value) {
  ZipBuilder zip;
  zip.add("archive/data.pkl", pickle_python(value));
  zip.add("archive/version", "3\n");
  zip.finish();
  return zip.take();
}

}  // namespace lerobot::formats
