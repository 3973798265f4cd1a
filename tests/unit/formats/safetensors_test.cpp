#include "lerobot/formats/safetensors.hpp"

#include <numeric>

#include "support.hpp"

namespace lerobot::formats::test {
namespace {

std::string le64(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), 8}; }

std::string file_of(std::string_view header, std::size_t data_nbytes) {
  return le64(header.size()) + std::string(header) + std::string(data_nbytes, '\1');
}

SafetensorsHeader parse(std::string_view file) {
  return parse_safetensors_header(bytes_of(file), "m.safetensors", ErrorKind::kCheckpoint);
}
std::string refusal(std::string_view file) {
  return message_of([&] { (void)parse(file); });
}

std::vector<SafetensorsTensor> tensors_of(const SafetensorsFile& file) {
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : file.entries())
    tensors.push_back({{entry.name, entry.dtype, entry.shape}, file.bytes(entry)});
  return tensors;
}

}  // namespace

TEST_CASE("Safetensors: every file of the reference writer is read and written again byte for byte", "[safetensors]") {
  const TemporaryFolder folder;
  int files = 0;
  for (const char* place : {"checkpoints", "convert_dcp", "act", "rng", "dcp_raw"}) {
    for (const fs::path& path : data_files(place, ".safetensors")) {
      INFO(path);
      const SafetensorsFile file(path);
      auto tensors = tensors_of(file);
      std::reverse(tensors.begin(), tensors.end());
      const auto ranges = write_safetensors(folder / "again", tensors, file.metadata());
      const std::string text = slurp(path);
      CHECK(slurp(folder / "again") == text);
      REQUIRE(ranges.size() == file.entries().size() + 1);
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        CHECK(ranges[i].name == (i == 0 ? "" : file.entries()[i - 1].name));
        CHECK(ranges[i].crc32c == crc32c(bytes_of(text).subspan(ranges[i].offset, ranges[i].nbytes)));
      }
      CHECK(ranges.back().offset + ranges.back().nbytes == text.size());
      ++files;
    }
  }
  CHECK(files > 100);
}

TEST_CASE("SafetensorsFile: names, shapes and values of a real policy", "[safetensors]") {
  const SafetensorsFile file(data("checkpoints/single/run/checkpoints/000006/pretrained_model/model.safetensors"));
  CHECK(file.metadata("format") == "pt");
  CHECK(file.metadata("nothing").empty());
  const SafetensorsEntry& bias = file.at("model.action_head.bias");
  CHECK(bias.dtype == DType::kF32);
  CHECK(bias.shape == std::vector<std::int64_t>{2});
  CHECK(file.bytes(bias).size() == 8);
  CHECK(file.find("model.nothing") == nullptr);
  CHECK_THAT(message_of([&] { (void)file.bytes("model.nothing"); }),
             Catch::Contains("model.safetensors: has no tensor \"model.nothing\""));
  SafetensorsFile moved(data("rng/rng_state.safetensors"));
  const SafetensorsFile to(std::move(moved));
  CHECK(to.at("torch_rng_state").shape == std::vector<std::int64_t>{5056});
}

TEST_CASE("B1: a wrong header length is refused with file name and reason", "[safetensors]") {
  CHECK(refusal("") == "m.safetensors: 0 bytes; a safetensors file begins with a header length of 8 bytes.");
  CHECK_THAT(refusal("1234567"), Catch::Contains("m.safetensors: 7 bytes;"));
  CHECK_THAT(refusal("\xff\xff\xff\xff\xff\xff\xff\x7f"),
             Catch::Contains("header length 9223372036854775807; the limit is 100,000,000 bytes"));
  CHECK_THAT(refusal(le64(1000) + "0123456789"), Catch::Contains("header length 1000, but only 10 bytes follow"));
  CHECK_THAT(refusal(le64(0)), Catch::Contains("header of 0 bytes does not begin with '{'"));
  CHECK_THAT(refusal(le64(100'000'001)), Catch::Contains("the limit is 100,000,000 bytes"));
  CHECK_THAT(refusal(le64(100'000'000)), Catch::Contains("but only 0 bytes follow"));
  const TemporaryFolder folder;
  spill(folder / "empty.safetensors", "");
  CHECK_THAT(message_of([&] { SafetensorsFile{folder / "empty.safetensors"}; }),
             Catch::Contains("empty.safetensors: 0 bytes"));
}

TEST_CASE("B2: a header of the wrong kind is refused, with the tensor's name where there is one", "[safetensors]") {
  CHECK_THAT(refusal(file_of("[1,2]", 0)), Catch::Contains("does not begin with '{'"));
  CHECK_THAT(refusal(file_of("\"x\"", 0)), Catch::Contains("does not begin with '{'"));
  CHECK_THAT(refusal(file_of(R"({"a":5})", 0)), Catch::Contains("a number under \"a\""));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8)),
             Catch::Contains("tensor \"a\" has no data_offsets"));
  CHECK_THAT(refusal(file_of(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8)),
             Catch::Contains("tensor \"a\" has no dtype"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8)),
             Catch::Contains("tensor \"a\" has no shape"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8)),
             Catch::Contains("tensor \"a\" has the unknown dtype \"F33\""));
  CHECK_THAT(refusal(file_of("{\"a\xff\":{}}", 0)), Catch::Contains("not UTF-8"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8)),
             Catch::Contains("tensor \"a\" has the unknown key \"x\""));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})", 8)),
             Catch::Contains("tensor \"a\" has a number in its dtype; expected a string"));
  for (const char* shape : {"[-1]", "[1.0]", "[null]", "[[1]]", "\"2\"", "{}", "[true]", "[18446744073709551615]"})
    CHECK_THAT(refusal(file_of(fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":[0,8]}}}})", shape), 8)),
               Catch::Contains("tensor \"a\" has"));
  for (const char* offsets : {"[]", "[0]", "[0,8,8]", "[0,-8]", "8", "[8,0]"})
    CHECK_THAT(refusal(file_of(fmt::format(R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":{}}}}})", offsets), 8)),
               Catch::Contains("tensor \"a\" has"));
  CHECK_THAT(refusal(file_of(R"({"__metadata__":{"a":1}})", 0)),
             Catch::Contains("__metadata__ \"a\"; expected a string"));
  CHECK_THAT(refusal(file_of(R"({"__metadata__":null})", 0)), Catch::Contains("null under \"__metadata__\""));
  CHECK_THAT(refusal(file_of("{} x", 0)), Catch::Contains("text after the end"));
}

TEST_CASE("B3: a name given twice is refused by name", "[safetensors]") {
  const char* twice =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  CHECK_THAT(refusal(file_of(twice, 8)), Catch::Contains("the key \"a\" appears twice"));
  CHECK_THAT(refusal(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0)), Catch::Contains("appears twice"));
}

TEST_CASE("B4: empty metadata reads", "[safetensors]") {
  const auto header = parse(file_of(R"({"__metadata__":{}, "a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
  CHECK(header.entries.size() == 1);
  CHECK(header.metadata.empty());
  CHECK(parse(file_of("{}", 0)).entries.empty());
}

TEST_CASE("B5: overlaps and holes are refused, the order of the header is free", "[safetensors]") {
  const auto two = [](std::string_view a, std::string_view b) {
    return file_of(
        fmt::format(
            R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":{}}},"b":{{"dtype":"F32","shape":[2],"data_offsets":{}}}}})",
            a, b),
        b == "[12,20]"  ? 20
        : b == "[4,12]" ? 12
                        : 16);
  };
  CHECK_THAT(refusal(two("[0,8]", "[4,12]")), Catch::Contains("tensors \"a\" and \"b\" overlap"));
  CHECK_THAT(refusal(two("[0,8]", "[12,20]")),
             Catch::Contains("bytes 8 to 12 in front of tensor \"b\" and behind \"a\" belong to no tensor"));
  const auto header = parse(two("[8,16]", "[0,8]"));
  CHECK(header.entries[0].name == "a");
  CHECK(header.entries[0].begin == 8);
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3)),
             Catch::Contains("bytes 0 to 1 in front of tensor \"a\""));
}

TEST_CASE("B6: shape and range agree, without overflow", "[safetensors]") {
  const auto one = [](std::string_view shape, std::string_view offsets, std::size_t nbytes) {
    return file_of(fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets), nbytes);
  };
  CHECK_THAT(
      refusal(one("[3]", "[0,8]", 8)),
      Catch::Contains("tensor \"a\" has shape [3] of F32, which takes 12 bytes, but its data_offsets are [0, 8]"));
  CHECK_THAT(refusal(one("[4294967296,4294967296]", "[0,0]", 0)),
             Catch::Contains("tensor \"a\" has shape [4294967296, 4294967296], which is larger"));
  CHECK_THAT(refusal(one("[4294967296,4294967296,0]", "[0,0]", 0)), Catch::Contains("which is larger"));
  CHECK(parse(one("[0,4]", "[0,0]", 0)).entries[0].shape == std::vector<std::int64_t>{0, 4});
  CHECK(parse(one("[]", "[0,4]", 4)).entries[0].shape.empty());
  CHECK_THAT(refusal(one("[2]", "[0,8]", 7)),
             Catch::Contains("tensor \"a\" ends at byte 8 of the data, but the file has only 7"));
  CHECK_THAT(refusal(one("[2]", "[0,8]", 9)), Catch::Contains("1 bytes follow the last tensor"));
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  CHECK_THAT(refusal(one(ones + "]", "[0,4]", 4)), Catch::Contains("more than 64 dimensions"));
}

TEST_CASE("Safetensors: every malformed example is refused", "[safetensors]") {
  const std::vector<std::pair<std::string, std::string>> expected{
      {"st_duplicate_key", "the key \"a\" appears twice"},
      {"st_header_length_short", "not valid JSON"},
      {"st_huge_header_length", "100,000,000"},
      {"st_not_utf8", "not UTF-8"},
      {"st_overlapping_offsets", "\"a\" and \"b\" overlap"},
      {"st_trailing_bytes", "13 bytes follow the last tensor"},
      {"st_truncated_data", "ends at byte 40 of the data, but the file has only 31"}};
  std::size_t files = 0;
  for (const fs::path& path : data_files("malformed", ".safetensors")) {
    if (!path.filename().string().starts_with("st_")) continue;
    ++files;
    const auto found = std::find_if(expected.begin(), expected.end(),
                                    [&](const auto& entry) { return entry.first == path.stem().string(); });
    REQUIRE(found != expected.end());
    const std::string message = message_of([&] { SafetensorsFile{path}; });
    CHECK_THAT(message, Catch::StartsWith(path.string() + ": "));
    CHECK_THAT(message, Catch::Contains(found->second));
  }
  CHECK(files == expected.size());
}

TEST_CASE("B7: the reserved name is refused before a file is made, its neighbour round-trips", "[safetensors]") {
  const TemporaryFolder folder;
  const std::string four(4, 'x');
  CHECK_THAT(message_of([&] {
               write_safetensors(folder / "a", {{{"__metadata__", DType::kF32, {1}}, bytes_of(four)}});
             }),
             Catch::Contains("a tensor is called __metadata__"));
  CHECK(fs::is_empty(folder.path()));
  write_safetensors(folder / "b", {{{"__metadata___", DType::kF32, {1}}, bytes_of(four)}});
  const SafetensorsFile file(folder / "b");
  CHECK(file.bytes("__metadata___").size() == 4);
}

TEST_CASE("SafetensorsWriter: what cannot be written is refused before a file is made", "[safetensors]") {
  const TemporaryFolder folder;
  const auto refuse = [&](std::vector<SafetensorsSpec> tensors, SafetensorsMetadata metadata = {}) {
    const std::string message = message_of([&] { SafetensorsWriter(folder / "a", tensors, metadata); });
    CHECK(fs::is_empty(folder.path()));
    return message;
  };
  CHECK_THAT(refuse({{"t", DType::kF32, {1}}, {"t", DType::kU8, {1}}}), Catch::Contains("\"t\" appears twice"));
  CHECK_THAT(refuse({{"t\xff", DType::kF32, {1}}}), Catch::Contains("not UTF-8"));
  CHECK_THAT(refuse({{"t", DType::kF32, {-1}}}), Catch::Contains("which no file can hold"));
  CHECK_THAT(refuse({{"t", DType::kF32, {1LL << 62, 1LL << 62}}}), Catch::Contains("which no file can hold"));
  CHECK_THAT(refuse({}, {{"k", "1"}, {"k", "2"}}), Catch::Contains("\"k\" appears twice"));
  CHECK_THAT(refuse({{"t", DType::kU8, {1LL << 62}}, {"u", DType::kU8, {1LL << 62}}}),
             Catch::Contains("larger than a file"));
}

TEST_CASE("SafetensorsWriter: wider dtypes come first, then names; parts come in any order", "[safetensors]") {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "m.safetensors",
                           {{"b", DType::kU8, {3}},
                            {"\"q\"\n\u00e9", DType::kBool, {}},
                            {"z", DType::kF32, {2}},
                            {"a", DType::kF32, {0, 7}},
                            {"h", DType::kBF16, {1}},
                            {"l", DType::kI64, {1}},
                            {"c", DType::kF16, {1}}},
                           {{"format", "pt"}, {"alias", "z"}});
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : writer.entries()) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"l", "a", "z", "h", "c", "b", "\"q\"\n\u00e9"});
  writer.write_part("z", 4, bytes_of("EFGH"));
  writer.write("b", bytes_of("xyz"));
  writer.write("\"q\"\n\u00e9", bytes_of("\1"));
  writer.write_part("z", 0, bytes_of("AB"));
  writer.write_part("z", 2, bytes_of("CD"));
  writer.write("h", bytes_of("hh"));
  writer.write("c", bytes_of("cc"));
  CHECK_THAT(message_of([&] { writer.commit(); }, ErrorKind::kInternal),
             Catch::Contains("only 0 of the 8 bytes of tensor \"l\""));
  writer.write("l", bytes_of("llllllll"));
  CHECK(!fs::exists(folder / "m.safetensors"));
  const auto ranges = writer.commit();
  const std::string text = slurp(folder / "m.safetensors");
  CHECK_THAT(
      text.substr(8),
      Catch::StartsWith(
          R"({"__metadata__":{"format":"pt","alias":"z"},"l":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[0,7],"data_offsets":[8,8]},)"));
  CHECK_THAT(text, Catch::EndsWith("llllllllABCDEFGHhhccxyz\1"));
  for (const StoredRange& range : ranges)
    CHECK(range.crc32c == crc32c(bytes_of(text).subspan(range.offset, range.nbytes)));
  const SafetensorsFile file(folder / "m.safetensors");
  CHECK(file.data_offset() % 8 == 0);
  CHECK(file.entries() == parse(text).entries);
  CHECK(file.at("\"q\"\n\u00e9").dtype == DType::kBool);
}

TEST_CASE("SafetensorsWriter: wrong lengths and double writes are named; nothing stays behind", "[safetensors]") {
  const TemporaryFolder folder;
  {
    SafetensorsWriter writer(folder / "m", {{"a", DType::kU8, {4}}});
    CHECK(fs::exists(folder / "m.tmp"));
    CHECK_THAT(message_of([&] { writer.write("a", bytes_of("12345")); }, ErrorKind::kInternal),
               Catch::Contains("5 bytes at 0 of tensor \"a\" were given; it has 4"));
    CHECK_THAT(message_of([&] { writer.write("x", {}); }, ErrorKind::kInternal),
               Catch::Contains("\"x\" was not announced"));
    writer.write("a", bytes_of("1234"));
    writer.write_part("a", 1, bytes_of("2"));
    CHECK_THAT(message_of([&] { writer.commit(); }, ErrorKind::kInternal), Catch::Contains("written twice"));
  }
  CHECK(fs::is_empty(folder.path()));
  CHECK_THAT(message_of([&] { SafetensorsWriter(folder / "no/m", {}); }),
             Catch::Contains("no/m.tmp: cannot create: No such file or directory"));
}

TEST_CASE("Safetensors: a header with many tensors reads in linear time", "[safetensors]") {
  std::vector<SafetensorsSpec> specs;
  for (int i = 0; i < 100'000; ++i) specs.push_back({fmt::format("layer.{}.weight", i), DType::kU8, {1}});
  auto [head, entries] = make_safetensors_head(specs, {}, "m", ErrorKind::kCheckpoint);
  const auto header = parse(head + std::string(100'000, 'x'));
  CHECK(header.entries == entries);
}

}  // namespace lerobot::formats::test
