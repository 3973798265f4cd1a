#include "lerobot/formats/torch_item.hpp"

#include <numeric>

#include "lerobot/formats/crc32c.hpp"
#include "lerobot/formats/dcp_metadata.hpp"
#include "lerobot/formats/zip.hpp"
#include "support.hpp"

namespace lerobot::formats::test {
namespace {

std::string make_item(DType dtype, const std::vector<std::int64_t>& shape, std::string_view payload) {
  const TorchTensorFrame frame(dtype, shape);
  REQUIRE(frame.payload_nbytes() == payload.size());
  const std::string item = frame.head() + std::string(payload) + frame.tail(crc32(bytes_of(payload)));
  CHECK(item.size() == frame.nbytes());
  return item;
}

// An archive around a pickle written by hand.
std::string archive(std::string_view pickle, std::string_view storage) {
  ZipBuilder zip;
  zip.add("x/data.pkl", pickle);
  zip.add("x/data/0", storage);
  zip.finish();
  return zip.take();
}

std::string tensor_pickle(std::string_view storage, int numel, int offset, const std::string& shape,
                          const std::string& strides) {
  using namespace std::string_literals;
  return "\x80\x02"s + "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\n"s + std::string(storage) +
         "\nX\x01\0\0\0"
         "0X\x03\0\0\0cpuK"s +
         static_cast<char>(numel) + "tQK" + static_cast<char>(offset) + shape + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR.";
}

std::string refusal(std::string_view item) {
  return message_of([&] { (void)read_torch_tensor(bytes_of(item), "f.distcp: w"); });
}

}  // namespace

TEST_CASE("crc32: known values, and pieces combine", "[torch_item]") {
  CHECK(crc32(bytes_of("123456789")) == 0xCBF43926);
  CHECK(crc32({}) == 0);
  CHECK(crc32(bytes_of("56789"), crc32(bytes_of("1234"))) == 0xCBF43926);
  CHECK(crc32_combine(crc32(bytes_of("1234")), crc32(bytes_of("56789")), 5) == 0xCBF43926);
}

TEST_CASE("Torch items: every item of the reference stack is read, and its pickle written again byte for byte",
          "[torch_item]") {
  int tensors = 0;
  int values = 0;
  int contiguous = 0;
  for (const char* place : {"dcp_raw", "checkpoints"}) {
    for (const fs::path& path : data_files(place, ".metadata")) {
      const fs::path folder = path.parent_path();
      const DcpMetadata metadata = read_dcp_metadata(folder);
      std::vector<MappedFile> files;
      for (const std::string& file : metadata.files()) files.emplace_back(folder / file);
      for (const DcpEntry& entry : metadata.entries()) {
        INFO(path << " " << entry.key);
        if (const DcpTensor* const tensor = entry.tensor()) {
          for (std::size_t chunk = 0; chunk < tensor->num_chunks(); ++chunk) {
            const auto& location = tensor->location(chunk);
            const auto item = dcp_item(files[location.file], location, entry.key);
            const TorchTensor stored = read_torch_tensor(item, entry.key);
            CHECK(stored.dtype == tensor->dtype());
            CHECK(std::equal(stored.shape.begin(), stored.shape.end(), tensor->sizes(chunk).begin(),
                             tensor->sizes(chunk).end()));
            const auto zip = read_stored_zip(item, entry.key);
            for (const ZipEntry& part : zip) CHECK(part.crc32 == crc32(part.data));
            ++tensors;
            if (!stored.is_contiguous()) continue;
            const TorchTensorFrame frame(stored.dtype, stored.shape);
            const std::string again = frame.head() + std::string(stored.data.size(), '\0') + frame.tail(0);
            // A dimension of size 1 may have any stride in a tensor that counts as contiguous.
            if (read_torch_tensor(bytes_of(again), "ours").strides != stored.strides) continue;
            const auto ours = read_stored_zip(bytes_of(again), "ours");
            ++contiguous;
            CHECK(ours[0].name == zip[0].name);
            CHECK(std::equal(ours[0].data.begin(), ours[0].data.end(), zip[0].data.begin(), zip[0].data.end()));
            // torch begins every file of an archive at a multiple of 64; so do we.
            CHECK(frame.head().size() % 64 == 0);
          }
        } else {
          const auto item = dcp_item(files[entry.value()->file], *entry.value(), entry.key);
          const PyValue value = read_torch_value(item, entry.key);
          const auto zip = read_stored_zip(item, entry.key);
          const std::string again = pickle_python(value);
          CHECK(std::ranges::equal(bytes_of(again), zip[0].data));
          CHECK(read_torch_value(bytes_of(make_torch_value(value)), "ours") == value);
          ++values;
        }
      }
    }
  }
  CHECK(tensors > 1000);
  CHECK(contiguous > 1000);
  CHECK(values > 100);
}

TEST_CASE("Torch items: all dtypes round-trip, with empty, scalar and four-dimensional shapes", "[torch_item]") {
  for (const DTypeInfo& type : kDTypes) {
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{}, {0}, {3, 0, 2}, {2, 3}, {1, 2, 3, 4}}) {
      const auto numel =
          static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
      std::string payload(numel * type.itemsize, '\0');
      std::iota(payload.begin(), payload.end(), '\1');
      const std::string item = make_item(type.dtype, shape, payload);
      const TorchTensor tensor = read_torch_tensor(bytes_of(item), "t");
      CHECK(tensor.dtype == type.dtype);
      CHECK(tensor.shape == shape);
      CHECK(tensor.is_contiguous());
      CHECK(std::ranges::equal(tensor.data, bytes_of(payload)));
    }
  }
}

TEST_CASE("Torch items: strides and a storage offset are honoured, and kept inside the storage", "[torch_item]") {
  const std::string storage(24, 'x');
  const auto item = [&](int numel, int offset, const char* shape, const char* strides) {
    return archive(tensor_pickle("FloatStorage", numel, offset, shape, strides), storage);
  };
  const TorchTensor transposed = read_torch_tensor(bytes_of(item(6, 0, "K\x03K\x02\x86", "K\x01K\x03\x86")), "t");
  CHECK(transposed.strides == std::vector<std::int64_t>{1, 3});
  CHECK(!transposed.is_contiguous());
  CHECK(transposed.data.size() == 24);
  CHECK(read_torch_tensor(bytes_of(item(6, 2, "K\x02\x85", "K\x02\x85")), "t").data.size() == 12);
  CHECK_THAT(refusal(item(6, 3, "K\x02\x85", "K\x03\x85")),
             Catch::Contains(
                 "f.distcp: w: not a readable item: shape [2] with strides [3] at element 3 leaves its storage of 6"));
  CHECK_THAT(refusal(item(6, 0, "K\x07\x85", "K\x01\x85")), Catch::Contains("leaves its storage"));
  CHECK_THAT(refusal(item(5, 0, "K\x02\x85", "K\x01\x85")),
             Catch::Contains("storage of 5 elements, but data/0 has 24 bytes"));
  CHECK_THAT(refusal(item(6, 0, "K\x02\x85", "K\x01K\x01\x86")), Catch::Contains("differ in length"));
  CHECK_THAT(refusal(item(6, 0, "J\xff\xff\xff\xff\x85", "K\x01\x85")), Catch::Contains("its shape has -1"));
  CHECK_THAT(refusal(item(6, 0, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85",
                          "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85")),
             Catch::Contains("leaves its storage"));
  // Stride 0 repeats an element: legal, but not without end.
  CHECK_THAT(refusal(item(6, 0, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85", "K\0\x85")),
             Catch::Contains("f.distcp: w"));
}

TEST_CASE("Torch items: archives that are damaged or hold something else are refused", "[torch_item]") {
  const std::string good = make_item(DType::kF32, {2}, "abcdefgh");
  for (std::size_t nbytes = 0; nbytes < good.size(); ++nbytes)
    CHECK_THROWS_AS(read_torch_tensor(bytes_of(good.substr(0, nbytes)), "t"), Error);
  CHECK_THAT(refusal(make_torch_value(3.5)), Catch::Contains("an object") || Catch::Contains("does not hold a tensor"));
  CHECK_THAT(message_of([&] { (void)read_torch_value(bytes_of(good), "v"); }),
             Catch::Contains("v: data.pkl: an object of torch._utils._rebuild_tensor_v2"));
  CHECK_THAT(refusal("no zip, but long enough for its end record"),
             Catch::Contains("f.distcp: w: not a readable zip archive: its end record is missing"));
  const auto patched = [&](std::string_view what, std::size_t skip, std::string_view with) {
    std::string item = good;
    item.replace(item.find(what) + skip, with.size(), with);
    return item;
  };
  using namespace std::string_literals;
  CHECK_THAT(refusal(patched("PK\1\2", 10, "\x08")),
             Catch::Contains("entry \"archive/data.pkl\" is compressed (method 8)"));
  CHECK_THAT(refusal(patched("PK\1\2", 8, "\x01")), Catch::Contains("is encrypted"));
  CHECK_THAT(refusal(patched("PK\1\2", 20, "\x01")), Catch::Contains("its lengths are"));
  CHECK_THAT(refusal(patched("PK\1\2", 42, "\x07")), Catch::Contains("has no header at 7"));
  CHECK_THAT(refusal(patched("PK\1\2", 20, "\xf0\xf0\0\0\xf0\xf0\0\0"s)),
             Catch::Contains("but the directory begins at"));
  CHECK_THAT(refusal(patched("PK\5\6", 10, "\xf0")), Catch::Contains("cannot have"));
  CHECK_THAT(refusal(patched("PK\5\6", 10, "\xff\xff")), Catch::Contains("64-bit end record is missing"));
  CHECK_THAT(refusal(patched("archive/data.pkl", 0, "archive/data.pkx")),
             Catch::Contains("has another name in its header"));
  CHECK_THAT(refusal(archive("\x80\x02"
                             "cposix\nsystem\n.",
                             "")),
             Catch::Contains("\"posix.system\" is not allowed"));
}

TEST_CASE("ZipBuilder: lengths past 4 GiB go into 64-bit fields", "[torch_item]") {
  // The payload is not made: only what stands around it.
  const std::uint64_t nbytes = (std::uint64_t{1} << 32) + 64;
  const TorchTensorFrame frame(DType::kU8, std::vector<std::int64_t>{static_cast<std::int64_t>(nbytes)});
  CHECK(frame.nbytes() == frame.head().size() + nbytes + frame.tail(7).size());
  CHECK(frame.head().size() % 64 == 0);
  const std::string tail = frame.tail(0x01020304);
  CHECK(tail.substr(0, 8) == std::string("PK\x07\x08\x04\x03\x02\x01"));
  std::uint64_t length = 0;
  std::memcpy(&length, tail.data() + 8, 8);
  CHECK(length == nbytes);
  CHECK_THAT(tail, Catch::Contains("PK\x06\x06") && Catch::Contains("PK\x06\x07"));
}

}  // namespace lerobot::formats::test
