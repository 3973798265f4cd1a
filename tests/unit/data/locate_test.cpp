#include "lerobot/data/locate.hpp"

#include <fstream>
#include <map>

#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace {

namespace fs = std::filesystem;
using lerobot::ErrorKind;
using lerobot::data::find_dataset;
using lerobot::test::expect_error;

void make_dataset(const fs::path& root) {
  fs::create_directories(root / "meta");
  std::ofstream(root / "meta" / "info.json") << "{}";
}

lerobot::data::ReadEnv env(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  };
}

}  // namespace

TEST_CASE("find_dataset: root, home variables and snapshots, in this order", "[locate]") {
  const lerobot::test::TempDir dir;
  const fs::path home = dir.path() / "home";
  make_dataset(home / "user" / "a");
  CHECK(find_dataset({home / "user" / "a", "", {}}, env({})) == home / "user" / "a");
  CHECK(find_dataset({{}, "user/a", {}}, env({{"HF_LEROBOT_HOME", home.string()}})) == home / "user" / "a");

  make_dataset(dir.path() / "hf" / "lerobot" / "user" / "b");
  CHECK(find_dataset({{}, "user/b", {}}, env({{"HF_HOME", (dir.path() / "hf").string()}})) ==
        dir.path() / "hf/lerobot/user/b");
  make_dataset(dir.path() / ".cache/huggingface/lerobot/user/c");
  CHECK(find_dataset({{}, "user/c", {}}, env({{"HOME", dir.path().string()}})) ==
        dir.path() / ".cache/huggingface/lerobot/user/c");

  const fs::path repo = home / "hub" / "datasets--user--d";
  make_dataset(repo / "snapshots" / "abc");
  const auto at_home = env({{"HF_LEROBOT_HOME", home.string()}});
  CHECK(find_dataset({{}, "user/d", {}}, at_home) == repo / "snapshots" / "abc");  // the only one
  make_dataset(repo / "snapshots" / "def");
  expect_error(ErrorKind::kDataset, {"user/d"}, [&] { (void)find_dataset({{}, "user/d", {}}, at_home); });
  fs::create_directories(repo / "refs");
  std::ofstream(repo / "refs" / "v3.0") << "def\n";
  CHECK(find_dataset({{}, "user/d", {}}, at_home) == repo / "snapshots" / "def");
  CHECK(find_dataset({{}, "user/d", "abc"}, at_home) == repo / "snapshots" / "abc");
}

TEST_CASE("find_dataset: says where it looked", "[locate]") {
  const lerobot::test::TempDir dir;
  expect_error(ErrorKind::kDataset,
               {"user/x", (dir.path() / "user/x").string(), "hub/datasets--user--x", "--dataset.root"}, [&] {
                 (void)find_dataset({{}, "user/x", {}}, env({{"HF_LEROBOT_HOME", dir.path().string()}}));
               });
  expect_error(ErrorKind::kDataset, {"meta/info.json", dir.path().string()}, [&] {
    (void)find_dataset({dir.path(), "user/x", {}}, env({}));
  });
  expect_error(ErrorKind::kConfig, {"LEROBOT_HOME", "HF_LEROBOT_HOME"}, [&] {
    (void)find_dataset({{}, "user/x", {}}, env({{"LEROBOT_HOME", "/old"}}));
  });
  expect_error(ErrorKind::kConfig, {"repo_id", "../x"}, [&] { (void)find_dataset({{}, "../x", {}}, env({})); });
}
