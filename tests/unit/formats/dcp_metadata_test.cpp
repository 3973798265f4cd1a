#include "lerobot/formats/dcp_metadata.hpp"

#include "lerobot/formats/json.hpp"
#include "support.hpp"

namespace lerobot::formats::test {
namespace {

Json to_json(std::span<const std::int64_t> numbers) {
  Json out = Json::array();
  for (const std::int64_t number : numbers) out.push_back(number);
  return out;
}

std::string refusal(const fs::path& folder) {
  return message_of([&] { (void)read_dcp_metadata(folder); });
}

void check_same(const DcpMetadata& a, const DcpMetadata& b) {
  REQUIRE(a.entries().size() == b.entries().size());
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    const DcpEntry& first = a.entries()[i];
    const DcpEntry& second = b.entries()[i];
    CHECK(first.key == second.key);
    CHECK(first.path == second.path);
    const auto same_place = [&](const DcpLocation& x, const DcpLocation& y) {
      CHECK(a.files()[x.file] == b.files()[y.file]);
      CHECK(x.offset == y.offset);
      CHECK(x.nbytes == y.nbytes);
    };
    REQUIRE((first.tensor() == nullptr) == (second.tensor() == nullptr));
    if (first.tensor() == nullptr) {
      same_place(*first.value(), *second.value());
      continue;
    }
    const DcpTensor& x = *first.tensor();
    const DcpTensor& y = *second.tensor();
    CHECK(x.dtype() == y.dtype());
    CHECK(std::ranges::equal(x.shape(), y.shape()));
    REQUIRE(x.num_chunks() == y.num_chunks());
    for (std::size_t c = 0; c < x.num_chunks(); ++c) {
      CHECK(std::ranges::equal(x.offsets(c), y.offsets(c)));
      CHECK(std::ranges::equal(x.sizes(c), y.sizes(c)));
      same_place(x.location(c), y.location(c));
    }
  }
}

DcpMetadata sharded(std::int64_t num_tensors, std::int64_t num_chunks) {
  DcpMetadata metadata;
  for (std::int64_t t = 0; t < num_tensors; ++t) {
    DcpTensor tensor(DType::kF32, {num_chunks * 2, 7});
    for (std::int64_t c = 0; c < num_chunks; ++c)
      tensor.add_chunk(
          std::vector<std::int64_t>{2 * c, 0}, std::vector<std::int64_t>{2, 7},
          {metadata.file_number(fmt::format("__{}_0.distcp", c)), static_cast<std::uint64_t>(t) * 1000, 1000});
    const std::string fqn = fmt::format("model.layers.{}.weight", t);
    metadata.add({"model." + fqn, {std::string("model"), fqn}, std::move(tensor)});
  }
  return metadata;
}

}  // namespace

TEST_CASE("DcpMetadata: what torch wrote is what its own readable form says", "[dcp_metadata]") {
  int folders = 0;
  for (const fs::path& path : data_files("dcp_raw", ".metadata.json")) {
    INFO(path);
    const Json expected = read_json(path, ErrorKind::kCheckpoint);
    const DcpMetadata metadata = read_dcp_metadata(path.string().substr(0, path.string().size() - 14));
    const Json& entries = expected.at("state_dict_metadata");
    REQUIRE(metadata.entries().size() == entries.size());
    std::size_t i = 0;
    for (const auto& [key, value] : entries.items()) {
      const DcpEntry& entry = metadata.entries()[i++];
      CHECK(entry.key == key);
      CHECK(&entry == metadata.find(key));
      const DcpTensor* const tensor = entry.tensor();
      REQUIRE((tensor != nullptr) == (value.at("kind") == "tensor"));
      if (tensor == nullptr) continue;
      CHECK(info(tensor->dtype()).torch == value.at("dtype"));
      CHECK(to_json(tensor->shape()) == value.at("size"));
      REQUIRE(tensor->num_chunks() == value.at("chunks").size());
      for (std::size_t c = 0; c < tensor->num_chunks(); ++c) {
        CHECK(to_json(tensor->offsets(c)) == value.at("chunks")[c].at("offsets"));
        CHECK(to_json(tensor->sizes(c)) == value.at("chunks")[c].at("sizes"));
      }
      CHECK(!tensor->coverage_fault());
    }
    std::size_t places = 0;
    for (const Json& place : expected.at("storage_data")) {
      const DcpEntry* const entry = metadata.find(place.at("fqn").get<std::string>());
      REQUIRE(entry != nullptr);
      const DcpLocation* location = entry->value();
      if (const DcpTensor* const tensor = entry->tensor())
        for (std::size_t c = 0; c < tensor->num_chunks(); ++c)
          if (to_json(tensor->offsets(c)) == place.at("offset")) location = &tensor->location(c);
      REQUIRE(location != nullptr);
      CHECK(metadata.files()[location->file] == place.at("relative_path"));
      CHECK(location->offset == place.at("file_offset"));
      CHECK(location->nbytes == place.at("length"));
      ++places;
    }
    std::size_t items = 0;
    for (const DcpEntry& entry : metadata.entries())
      items += entry.tensor() == nullptr ? 1 : entry.tensor()->num_chunks();
    CHECK(places == items);
    for (const auto& [key, saved_path] : expected.at("planner_data").items()) {
      const DcpEntry* const entry = metadata.find(key);
      REQUIRE(entry != nullptr);
      Json found = Json::array();
      for (const auto& part : entry->path) std::visit([&](const auto& value) { found.push_back(value); }, part);
      CHECK(found == saved_path);
    }
    ++folders;
  }
  CHECK(folders == 10);
}

TEST_CASE("DcpMetadata: written again, every reference file keeps its meaning", "[dcp_metadata]") {
  const TemporaryFolder folder;
  int folders = 0;
  for (const char* place : {"dcp_raw", "checkpoints"}) {
    for (const fs::path& path : data_files(place, ".metadata")) {
      INFO(path);
      const DcpMetadata metadata = read_dcp_metadata(path.parent_path());
      for (const DcpEntry& entry : metadata.entries()) CHECK(!entry.path.empty());
      write_dcp_metadata(metadata, folder.path());
      check_same(metadata, read_dcp_metadata(folder.path()));
      ++folders;
    }
  }
  CHECK(folders >= 13);
}

TEST_CASE("DcpMetadata: many chunks, in linear time", "[dcp_metadata]") {
  const DcpMetadata metadata = sharded(100, 1000);
  const std::string pickle = encode_dcp_metadata(metadata);
  check_same(metadata, parse_dcp_metadata(bytes_of(pickle), "m"));
}

TEST_CASE("DcpMetadata: the malformed examples are refused", "[dcp_metadata]") {
  CHECK_THAT(refusal(data("malformed/dcp_forbidden_global")),
             Catch::Contains("dcp_forbidden_global/.metadata: byte") &&
                 Catch::Contains("the global \"builtins.print\" is not allowed"));
  CHECK_THAT(refusal(data("malformed/dcp_truncated_metadata")),
             Catch::Contains("dcp_truncated_metadata/.metadata: byte") && Catch::Contains("is cut"));
  const TemporaryFolder folder;
  CHECK_THAT(refusal(folder.path()), Catch::Contains((folder / ".metadata").string() + ": metadata is None"));

  const fs::path out_of_range = data("malformed/dcp_offset_out_of_range");
  const DcpMetadata metadata = read_dcp_metadata(out_of_range);
  std::string message;
  for (const DcpEntry& entry : metadata.entries())
    for (std::size_t c = 0; entry.tensor() != nullptr && c < entry.tensor()->num_chunks(); ++c) {
      const DcpLocation& location = entry.tensor()->location(c);
      const MappedFile file(out_of_range / metadata.files()[location.file]);
      if (location.offset >= 10'000'000) message = message_of([&] { (void)dcp_item(file, location, entry.key); });
    }
  CHECK_THAT(message,
             Catch::Contains(".distcp: \"rows_bf16\" has") && Catch::Contains("at 10000000, but the file has"));

  const fs::path missing = data("malformed/dcp_missing_file");
  const DcpMetadata incomplete = read_dcp_metadata(missing);
  for (const std::string& file : incomplete.files())
    if (!fs::exists(missing / file))
      CHECK_THAT(message_of([&] { MappedFile{missing / file}; }),
                 Catch::Contains("__1_0.distcp: cannot open for reading"));
}

TEST_CASE("DcpMetadata: every cut of a file, and every byte changed, is refused or read, never worse",
          "[dcp_metadata]") {
  const std::string good = slurp(data("dcp_raw/mixed_w2/mixed/.metadata"));
  for (std::size_t nbytes = 0; nbytes < good.size(); nbytes += 7)
    CHECK_THROWS_AS(parse_dcp_metadata(bytes_of(good.substr(0, nbytes)), "m"), Error);
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    try {
      (void)parse_dcp_metadata(bytes_of(changed), "m");
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("DcpMetadata: plans that do not cover a tensor exactly once are not written", "[dcp_metadata]") {
  const auto fault = [](const std::vector<std::int64_t>& shape,
                        const std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>& chunks) {
    DcpTensor tensor(DType::kF32, shape);
    for (const auto& [offsets, sizes] : chunks) tensor.add_chunk(offsets, sizes, {});
    return tensor.coverage_fault().value_or("");
  };
  CHECK(fault({}, {{{}, {}}}).empty());
  CHECK(fault({2}, {{{0}, {1}}, {{1}, {1}}, {{2}, {0}}}).empty());
  CHECK(fault({0, 3}, {{{0, 0}, {0, 3}}}).empty());
  CHECK(fault({4, 4}, {{{0, 0}, {2, 2}}, {{0, 2}, {2, 2}}, {{2, 0}, {2, 2}}, {{2, 2}, {2, 2}}}).empty());
  CHECK(fault({2, 6}, {{{0, 4}, {2, 2}}, {{0, 0}, {2, 4}}}).empty());
  CHECK_THAT(fault({4}, {{{0}, {2}}}), Catch::Contains("hold 2 elements, the shape [4] has 4"));
  CHECK_THAT(fault({4}, {{{0}, {3}}, {{2}, {2}}}),
             Catch::Contains("chunks [0] of size [3] and [2] of size [2] overlap"));
  CHECK_THAT(fault({4}, {{{0}, {2}}, {{0}, {2}}}), Catch::Contains("overlap"));
  CHECK_THAT(fault({4}, {{{2}, {3}}}), Catch::Contains("leaves the shape [4]"));
  CHECK_THAT(fault({}, {{{}, {}}, {{}, {}}}), Catch::Contains("overlap"));
  DcpMetadata metadata;
  DcpTensor half(DType::kF32, {4});
  half.add_chunk(std::vector<std::int64_t>{0}, std::vector<std::int64_t>{2},
                 {metadata.file_number("__0_0.distcp"), 0, 10});
  metadata.add({"w", {std::string("w")}, half});
  CHECK_THAT(message_of([&] { (void)encode_dcp_metadata(metadata); }),
             Catch::Contains("Failed to validate global plan: \"w\""));
  CHECK_THAT(message_of([&] { metadata.add({"w", {}, DcpLocation{}}); }), Catch::Contains("\"w\" appears twice"));
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", ""})
    CHECK_THAT(message_of([&] { (void)metadata.file_number(path); }), Catch::Contains("is not inside its directory"));
}

}  // namespace lerobot::formats::test
