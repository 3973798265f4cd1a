#include "lerobot/data/locate.hpp"

#include <cstdlib>
#include <fstream>
#include <vector>

#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace fs = std::filesystem;

std::optional<std::string> read_env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

namespace {

fs::path expand_home(const std::string& text, const ReadEnv& env) {
  if (text != "~" && text.rfind("~/", 0) != 0) return text;
  const auto home = env("HOME");
  if (!home) return text;
  return text.size() > 2 ? fs::path(*home) / text.substr(2) : fs::path(*home);
}

fs::path lerobot_home(const ReadEnv& env) {
  if (env("LEROBOT_HOME"))
    fail(ErrorKind::kConfig,
         "dataset: the environment sets LEROBOT_HOME, which is no longer used. Set HF_LEROBOT_HOME instead, and unset "
         "it.");
  if (const auto home = env("HF_LEROBOT_HOME")) return expand_home(*home, env);
  return expand_home(env("HF_HOME").value_or("~/.cache/huggingface"), env) / "lerobot";
}

bool holds_dataset(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "meta" / "info.json", ignored);
}

/// Snapshot folders of a hub cache that may hold the wanted revision, best first.
std::vector<fs::path> snapshots(const fs::path& repo, const std::string& revision) {
  std::vector<fs::path> found;
  std::ifstream ref(repo / "refs" / revision);
  std::string commit;
  if (ref >> commit) found.push_back(repo / "snapshots" / commit);
  found.push_back(repo / "snapshots" / revision);
  std::error_code error;
  std::vector<fs::path> all;
  for (fs::directory_iterator it(repo / "snapshots", error), end; !error && it != end; it.increment(error))
    all.push_back(it->path());
  if (all.size() == 1) found.push_back(all.front());
  return found;
}

}  // namespace

fs::path find_dataset(const DatasetLocation& where, const ReadEnv& env) {
  if (where.root) {
    if (!holds_dataset(*where.root))
      fail(ErrorKind::kDataset,
           "dataset.root: {} has no meta/info.json. Give the folder that holds meta/, data/ and videos/.",
           where.root->string());
    return *where.root;
  }
  const fs::path id(where.repo_id);
  bool plain = !where.repo_id.empty() && id.is_relative();
  for (const fs::path& part : id) plain = plain && part != "..";
  if (!plain)
    fail(ErrorKind::kConfig, "dataset.repo_id: got \"{}\"; expected <user>/<name>, or give --dataset.root.",
         where.repo_id);
  const fs::path home = lerobot_home(env);
  std::vector<fs::path> tried{home / id};
  std::string folder = "datasets--" + where.repo_id;
  for (std::size_t at; (at = folder.find('/')) != std::string::npos;) folder.replace(at, 1, "--");
  for (fs::path& path : snapshots(home / "hub" / folder, where.revision.value_or("v3.0")))
    tried.push_back(std::move(path));
  std::string places;
  for (const fs::path& path : tried) {
    if (holds_dataset(path)) return path;
    places += "\n  " + path.string();
  }
  fail(ErrorKind::kDataset,
       "dataset {}: no meta/info.json in any of the places looked at:{}\n  Nothing is downloaded: fetch the dataset "
       "first, "
       "or give --dataset.root=<folder>.",
       where.repo_id, places);
}

}  // namespace lerobot::data
