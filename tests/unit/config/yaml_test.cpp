#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;

namespace {
Json read(const std::string& text) { return tokens_from_yaml(text, "run.yaml"); }
}  // namespace

TEST_CASE("tokens_from_yaml: maps, lists and scalars keep their source text", "[yaml]") {
  const Json tokens = read(
      "# a comment\n"
      "---\n"
      "steps: 1_000   # another\n"
      "dataset:\n"
      "  repo_id: user/ds\n"
      "  episodes: [0, 1,\n"
      "             2]\n"
      "policy: {type: act, chunk_size: 10}\n"
      "job:\n"
      "  tags:\n"
      "  - a b\n"
      "  - \"c # d\"\n"
      "  - 'it''s'\n"
      "list:\n"
      "  - name: x\n"
      "    value: 1\n"
      "  -\n"
      "    name: y\n"
      "'quoted key': http://host:80/x#y\n"
      "empty:\n");
  CHECK(tokens == Json::parse(R"({
    "steps": "1_000",
    "dataset": {"repo_id": "user/ds", "episodes": ["0", "1", "2"]},
    "policy": {"type": "act", "chunk_size": "10"},
    "job": {"tags": ["a b", "\"c # d\"", "\"it's\""]},
    "list": [{"name": "x", "value": "1"}, {"name": "y"}],
    "quoted key": "http://host:80/x#y",
    "empty": "null"
  })"));
}

TEST_CASE("tokens_from_yaml: a wrong document names file and line", "[yaml]") {
  const auto refused = [](const std::string& text, const std::string& line) {
    CAPTURE(text);
    CHECK_THROWS_WITH(read(text), Catch::Contains("run.yaml: line " + line + ":"));
  };
  refused("a: 1\na: 2\n", "2");
  refused("a: 1\n  b: 2\n", "2");
  refused("a:\n\tb: 1\n", "2");
  refused("a: &x 1\n", "1");
  refused("a: *x\n", "1");
  refused("a: |\n  text\n", "1");
  refused("a: !!int 3\n", "1");
  refused("a: [1, 2\nb: 3\n", "1");
  refused("a: \"open\n", "1");
  refused("a: 1\n---\nb: 2\n", "2");
  refused("a: 1\njust text\n", "2");
}

TEST_CASE("tokens_from_yaml: nesting has a limit", "[yaml]") {
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "- ";
  CHECK_THROWS_WITH(read(deep + "x"), Catch::Contains("too deeply"));
}
