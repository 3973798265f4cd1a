#include "lerobot/formats/atomic_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <csignal>

#include "lerobot/formats/commit_directory.hpp"
#include "lerobot/formats/mapped_file.hpp"
#include "support.hpp"

namespace lerobot::formats::test {

TEST_CASE("AtomicFile: the name appears at the commit, the old content stays until then", "[atomic_file]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", std::string_view("old"));
  {
    AtomicFile file(folder / "a");
    file.append(bytes_of("ne"));
    file.write_at(2, bytes_of("w!"));
    CHECK(slurp(folder / "a") == "old");
    CHECK(file.end() == 2);
    file.commit();
    CHECK_THROWS_AS(file.commit(), Error);
    CHECK_THROWS_AS(file.append(bytes_of("x")), Error);
  }
  CHECK(slurp(folder / "a") == "new!");
  { AtomicFile(folder / "a").append(bytes_of("lost")); }
  CHECK(slurp(folder / "a") == "new!");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("AtomicFile: a system error carries path and reason and leaves no temporary", "[atomic_file]") {
  const TemporaryFolder folder;
  CHECK(message_of([&] { write_file_atomically(folder / "no/a", std::string_view("x")); }) ==
        (folder / "no/a.tmp").string() + ": cannot create: No such file or directory.");
  fs::create_directory(folder / "taken");
  spill(folder / "taken/x", "x");
  CHECK_THAT(message_of([&] { write_file_atomically(folder / "taken", std::string_view("x")); }),
             Catch::Contains("Is a directory"));
  CHECK(!fs::exists(folder / "taken.tmp"));

  // A limit on file length stands in for a full disk, which a test cannot make everywhere.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1000;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = message_of([&] { write_file_atomically(folder / "big", std::string(2000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(message == (folder / "big.tmp").string() + ": cannot write: File too large.");
  CHECK(!fs::exists(folder / "big"));
  CHECK(!fs::exists(folder / "big.tmp"));
}

TEST_CASE("replace_symlink: swaps links and spares everything else", "[atomic_file]") {
  const TemporaryFolder folder;
  const fs::path last = folder / "last";
  replace_symlink(last, "000003");
  CHECK(fs::read_symlink(last) == "000003");
  fs::create_symlink("left-over", folder / "last.tmp");
  replace_symlink(last, "000006");
  CHECK(fs::read_symlink(last) == "000006");
  CHECK(!fs::exists(fs::symlink_status(folder / "last.tmp")));

  fs::create_directories(folder / "dir/inside");
  CHECK_THAT(message_of([&] { replace_symlink(folder / "dir", "x"); }), Catch::Contains("file exists"));
  CHECK(fs::exists(folder / "dir/inside"));
  spill(folder / "file", "content");
  CHECK_THAT(message_of([&] { replace_symlink(folder / "file", "x"); }), Catch::Contains("file exists"));
  CHECK(slurp(folder / "file") == "content");
}

TEST_CASE("CommitDirectory: appears whole, replaces whole, or not at all", "[atomic_file]") {
  const TemporaryFolder folder;
  const fs::path step = folder / "000004";
  {
    CommitDirectory directory(step);
    CHECK(directory.staging() == folder / ".incomplete-000004");
    CHECK(directory.staging() == CommitDirectory::staging_of(step));
    fs::create_directories(directory.staging() / "training_state");
    spill(directory.staging() / "training_state/a", "one");
    CHECK(!fs::exists(step));
    directory.commit();
  }
  CHECK(slurp(step / "training_state/a") == "one");
  {
    CommitDirectory directory(step);
    spill(directory.staging() / "b", "two");
    CHECK(fs::exists(step / "training_state/a"));
    directory.commit();
  }
  CHECK(slurp(step / "b") == "two");
  CHECK(!fs::exists(step / "training_state"));
  {
    CommitDirectory directory(step);
    spill(directory.staging() / "c", "three");
  }
  CHECK(!fs::exists(step / "c"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("CommitDirectory: what a crash left is replaced, or removed on demand", "[atomic_file]") {
  const TemporaryFolder folder;
  fs::create_directories(folder / ".incomplete-000004/deep");
  spill(folder / ".incomplete-000004/deep/a", "half");
  { CommitDirectory(folder / "000004").commit(); }
  CHECK(fs::is_empty(folder / "000004"));

  fs::create_directories(folder / ".incomplete-000006/deep");
  fs::create_directory_symlink("000004", folder / "last");
  fs::create_directory(folder / ".replaced-000004");
  fs::create_directory(folder / ".replaced-000005");
  spill(folder / ".replaced-000005/a", "kept");
  CHECK(CommitDirectory::remove_stale(folder.path()) ==
        std::vector<fs::path>{folder / ".incomplete-000006", folder / ".replaced-000004"});
  CHECK(fs::exists(folder / "000004"));
  CHECK(slurp(folder / "000005/a") == "kept");
  CHECK(fs::is_symlink(folder / "last"));
  CHECK(CommitDirectory::remove_stale(folder / "nothing").empty());
  CHECK_THAT(message_of([&] { CommitDirectory::remove_stale(folder / "000005/a"); }),
             Catch::Contains("Not a directory"));
}

TEST_CASE("MappedFile: only regular files, also empty ones, and the mapping moves", "[atomic_file]") {
  const TemporaryFolder folder;
  spill(folder / "empty", "");
  CHECK(MappedFile(folder / "empty").bytes().empty());
  spill(folder / "a", "abc");
  MappedFile first(folder / "a");
  MappedFile second(std::move(first));
  fs::remove(folder / "a");
  REQUIRE(second.bytes().size() == 3);
  CHECK(std::memcmp(second.bytes().data(), "abc", 3) == 0);
  CHECK(first.bytes().empty());
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(message_of([&] { MappedFile(folder / "pipe"); }), Catch::Contains("not a regular file"));
  CHECK_THAT(message_of([&] { MappedFile(folder / "none", ErrorKind::kDataset); }, ErrorKind::kDataset),
             Catch::Contains("none: cannot open for reading: No such file or directory"));
  CHECK_THAT(message_of([&] {
               spill(folder / "b", "12345");
               (void)read_small_file(folder / "b", 4, ErrorKind::kCheckpoint);
             }),
             Catch::Contains("5 bytes; at most 4 are read"));
}

}  // namespace lerobot::formats::test
