#include "lerobot/formats/manifest.hpp"

#include "lerobot/formats/json.hpp"
#include "lerobot/formats/mapped_file.hpp"
#include "lerobot/formats/safetensors.hpp"
#include "support.hpp"

namespace lerobot::formats::test {
namespace {

const std::string kBig = [] {
  std::string text(9 << 20, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 >> 7);
  return text;
}();

// A step folder with one file of each sort.
void make_step(const fs::path& folder) {
  fs::create_directories(folder / "pretrained_model");
  fs::create_directories(folder / "training_state");
  write_safetensors(
      folder / "pretrained_model/model.safetensors",
      {{{"a.weight", DType::kF32, {2}}, bytes_of("AAAABBBB")}, {{"b", DType::kU8, {3}}, bytes_of("xyz")}});
  spill(folder / "pretrained_model/config.json", "{}");
  spill(folder / "training_state/big", kBig);
  spill(folder / "training_state/empty", "");
}

void flip(const fs::path& path, std::size_t at) {
  std::string bytes = slurp(path);
  bytes[at] = static_cast<char>(bytes[at] ^ 4);
  spill(path, bytes);
}

}  // namespace

TEST_CASE("Manifest: describes a folder, reads back, finds nothing wrong", "[manifest]") {
  const TemporaryFolder folder;
  make_step(folder.path());
  CHECK(!Manifest::read(folder.path()));
  describe_directory(folder.path()).write(folder.path());
  const auto manifest = Manifest::read(folder.path());
  REQUIRE(manifest);
  CHECK(manifest->files().size() == 4);
  const ManifestFile* const model = manifest->find("pretrained_model/model.safetensors");
  REQUIRE(model != nullptr);
  REQUIRE(model->ranges.size() == 3);
  CHECK(model->ranges[1].name == "a.weight");
  CHECK(model->ranges[1].nbytes == 8);
  CHECK(manifest->find("training_state/big")->ranges.size() == 3);
  CHECK(manifest->find("training_state/empty")->ranges.empty());
  CHECK(manifest->find("manifest.json") == nullptr);
  CHECK(verify_all(*manifest, folder.path(), MissingFiles::kReported).empty());
  CHECK(describe_directory(folder.path()).files() == manifest->files());
  CHECK_NOTHROW(read_json(folder / "manifest.json", ErrorKind::kCheckpoint));
}

TEST_CASE("Manifest: the ranges that a writer gives are those of a later look", "[manifest]") {
  const TemporaryFolder folder;
  const auto ranges = write_safetensors(
      folder / "m.safetensors", {{{"e", DType::kF32, {0}}, {}}, {{"a", DType::kF32, {2}}, bytes_of("AAAABBBB")}});
  const ManifestFile described = describe_file(folder / "m.safetensors");
  Manifest manifest;
  manifest.add_file("m.safetensors", described.nbytes, ranges);
  CHECK(verify_all(manifest, folder.path(), MissingFiles::kReported).empty());
  CHECK(ranges.size() == described.ranges.size());
}

TEST_CASE("Manifest: damage is named by file, tensor and range", "[manifest]") {
  const TemporaryFolder folder;
  make_step(folder.path());
  const Manifest manifest = describe_directory(folder.path());
  const fs::path model = folder / "pretrained_model/model.safetensors";
  const auto nbytes = fs::file_size(model);
  flip(model, nbytes - 6);
  flip(folder / "training_state/big", 5 << 20);
  spill(folder / "pretrained_model/config.json", "{ }");
  fs::remove(folder / "training_state/empty");
  const auto damages = verify_all(manifest, folder.path(), MissingFiles::kReported);
  REQUIRE(damages.size() == 4);
  CHECK(damages[0].describe() == "pretrained_model/config.json (bytes 0 to 2): has 3 bytes, the manifest says 2");
  CHECK_THAT(damages[1].describe(), Catch::StartsWith(fmt::format(
                                        "pretrained_model/model.safetensors (\"a.weight\", bytes {} to {}): CRC-32C is",
                                        nbytes - 11, nbytes - 3)));
  CHECK_THAT(damages[2].describe(), Catch::StartsWith("training_state/big (bytes 4194304 to 8388608)"));
  CHECK(damages[3].describe() == "training_state/empty (bytes 0 to 0): is missing");
  CHECK(verify_all(manifest, folder.path(), MissingFiles::kIgnored).size() == 3);
  CHECK(verify_file(manifest, folder.path(), "not/listed").empty());
}

TEST_CASE("RangeVerifier: looks at what is read and at nothing else, once", "[manifest]") {
  const TemporaryFolder folder;
  make_step(folder.path());
  const Manifest manifest = describe_directory(folder.path());
  const fs::path path = folder / "training_state/big";
  flip(path, 5 << 20);
  const MappedFile file(path);
  RangeVerifier verifier(manifest.find("training_state/big"), path);
  CHECK_NOTHROW(verifier.require(file.bytes(), 100, 4000));
  CHECK_NOTHROW(verifier.require(file.bytes(), 0, 4 << 20));
  CHECK_NOTHROW(verifier.require(file.bytes(), 8 << 20, 1));
  const std::string message = message_of([&] { verifier.require(file.bytes(), (4 << 20) - 1, 2); });
  CHECK_THAT(message, Catch::Contains("training_state/big: bytes 4194304 to 8388608: CRC-32C is") &&
                          Catch::Contains("lerobot-checkpoint seal"));
  CHECK_THAT(message_of([&] { verifier.require(file.bytes().first(100), 0, 1); }),
             Catch::Contains("has 100 bytes, the manifest says 9437184"));
  CHECK_NOTHROW(RangeVerifier(nullptr, path).require(file.bytes(), 0, file.bytes().size()));
}

TEST_CASE("Manifest: parts of several ranks become one", "[manifest]") {
  Manifest first;
  first.add_file("a \"\u00e9\"", 4, {{"n\n", 0, 4, 0xDEADBEEF}});
  Manifest second;
  second.add_file("b", 0, {});
  first.merge(Manifest::parse(second.text(), "rank 1"));
  const Manifest again = Manifest::parse(first.text(), "all");
  CHECK(again.files() == first.files());
  CHECK(again.find("a \"\u00e9\"")->ranges[0].crc32c == 0xDEADBEEF);
  first.remove_file("b");
  first.remove_file("c");
  CHECK(first.files().size() == 1);
}

TEST_CASE("Manifest: a text that was damaged, changed or forged is refused", "[manifest]") {
  Manifest manifest;
  manifest.add_file("a", 10, {{"t", 0, 4, 1}, {"u", 4, 6, 2}});
  const std::string text = manifest.text();
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK_THROWS_AS(Manifest::parse(changed, "m"), Error);
    CHECK_THROWS_AS(Manifest::parse(text.substr(0, at), "m"), Error);
  }
  CHECK_THAT(
      message_of([&] { (void)Manifest::parse(text + " ", "dir/manifest.json"); }),
      Catch::Contains("dir/manifest.json: is damaged or was changed") && Catch::Contains("lerobot-checkpoint seal"));

  // The sum is no signature: whoever forges one must still pass the checks.
  const auto forged = [&](std::string_view what, std::string_view with) {
    std::string body = text.substr(0, text.find("\"crc32c\": \"", text.find("],\n")));
    body.replace(body.find(what), what.size(), with);
    const std::string whole = body + fmt::format("\"crc32c\": \"{:08x}\"\n}}\n", crc32c(bytes_of(body)));
    return message_of([&] { (void)Manifest::parse(whole, "m"); });
  };
  CHECK_THAT(forged("\"path\": \"a\"", "\"path\": \"../a\""), Catch::Contains("\"../a\", which leaves the folder"));
  CHECK_THAT(forged("\"path\": \"a\"", "\"path\": \"/etc/x\""), Catch::Contains("which leaves the folder"));
  CHECK_THAT(forged("\"offset\": 4", "\"offset\": 3"), Catch::Contains("overlaps another or leaves the file"));
  CHECK_THAT(forged("\"nbytes\": 6", "\"nbytes\": 7"), Catch::Contains("overlaps another or leaves the file"));
  CHECK_THAT(forged("\"nbytes\": 6", "\"nbytes\": 9223372036854775807"),
             Catch::Contains("overlaps another or leaves the file"));
  CHECK_THAT(forged("\"nbytes\": 6", "\"nbytes\": -6"), Catch::Contains("-6 under \"nbytes\""));
  CHECK_THAT(forged("\"nbytes\": 6", "\"what\": 6"), Catch::Contains("a number under \"what\""));
  CHECK_THAT(forged("\"version\": 1", "\"version\": 2"), Catch::Contains("version 2; this program reads version 1"));
  CHECK_THAT(forged("00000002", "zz"), Catch::Contains("the sum \"zz\""));
  CHECK_THAT(forged("\"nbytes\": 6", "\"nbytes\": [6]"), Catch::Contains("an array under \"nbytes\""));
  CHECK_THAT(forged("\"nbytes\": 6", "\"nbytes\": {}"), Catch::Contains("nested too deep"));
}

TEST_CASE("Manifest: a broken safetensors file is not described, a bad path not listed", "[manifest]") {
  const TemporaryFolder folder;
  spill(folder / "m.safetensors", "garbage");
  CHECK_THAT(message_of([&] { (void)describe_directory(folder.path()); }), Catch::Contains("m.safetensors: 7 bytes"));
  Manifest manifest;
  for (const char* path : {"", "/a", "a/../b", "manifest.json", "a\xff"})
    CHECK_THAT(message_of([&] { manifest.add_file(path, 0, {}); }, ErrorKind::kInternal),
               Catch::Contains("cannot be listed"));
  CHECK_THAT(message_of(
                 [&] {
                   manifest.add_file("a", 3, {{"", 0, 4, 0}});
                 },
                 ErrorKind::kInternal),
             Catch::Contains("leaves the file"));
}

}  // namespace lerobot::formats::test
