#include "lerobot/formats/json.hpp"

#include <cmath>
#include <limits>

#include "support.hpp"

namespace lerobot::formats::test {
namespace {

Json parse(std::string_view text) { return parse_json(text, "f.json", ErrorKind::kConfig); }
std::string refusal(std::string_view text) {
  return message_of([&] { (void)parse(text); }, ErrorKind::kConfig);
}

}  // namespace

TEST_CASE("dump_python: every JSON file that LeRobot wrote comes back byte for byte", "[json]") {
  int files = 0;
  for (const fs::path& path : data_files("checkpoints", ".json")) {
    const std::string folder = path.parent_path().filename().string();
    // The files under expected/ were written by a test script in another form.
    if (folder != "pretrained_model" && folder != "training_state" && folder != "pretrained_model_ema") continue;
    const std::string text = slurp(path);
    const int indent = path.filename().string().starts_with("policy_") ? 2 : 4;
    // PEFT writes its own file with indent 2.
    const bool adapter = path.filename() == "adapter_config.json";
    INFO(path);
    CHECK(dump_python(parse_json(text, path, ErrorKind::kCheckpoint), adapter ? 2 : indent, true) == text);
    ++files;
  }
  CHECK(files > 50);
}

TEST_CASE("python_repr: lays numbers out as Python does", "[json]") {
  const std::vector<std::pair<double, std::string>> cases{{1e-5, "1e-05"},
                                                          {10.0, "10.0"},
                                                          {1e-4, "0.0001"},
                                                          {0.1, "0.1"},
                                                          {0.0, "0.0"},
                                                          {-0.0, "-0.0"},
                                                          {1e16, "1e+16"},
                                                          {1e15, "1000000000000000.0"},
                                                          {65536.0, "65536.0"},
                                                          {1.5e300, "1.5e+300"},
                                                          {-2.5e-7, "-2.5e-07"},
                                                          {123456789012345680.0, "1.2345678901234568e+17"},
                                                          {9007199254740993.0, "9007199254740992.0"},
                                                          {5e-324, "5e-324"},
                                                          {1.7976931348623157e308, "1.7976931348623157e+308"},
                                                          {1.0 / 3.0, "0.3333333333333333"},
                                                          {123.456, "123.456"},
                                                          {100.0, "100.0"}};
  for (const auto& [number, text] : cases) CHECK(python_repr(number) == text);
  CHECK(dump_python(Json(std::numeric_limits<double>::infinity()), -1, true) == "Infinity");
  CHECK(dump_python(Json(-std::numeric_limits<double>::infinity()), -1, true) == "-Infinity");
  CHECK(dump_python(Json(std::nan("")), -1, true) == "NaN");
}

TEST_CASE("dump_python: layout, empties and characters as json.dumps", "[json]") {
  const Json value = parse(R"({"a":[1,-2.5,[]],"b":{},"c":{"d":null,"e":true}})");
  CHECK(dump_python(value, 4, true) ==
        "{\n    \"a\": [\n        1,\n        -2.5,\n        []\n    ],\n    \"b\": {},\n    \"c\": {\n        \"d\": "
        "null,\n        \"e\": true\n    }\n}");
  CHECK(dump_python(value, -1, true) == R"({"a": [1, -2.5, []], "b": {}, "c": {"d": null, "e": true}})");
  CHECK(dump_python(value, 0, true).starts_with("{\n\"a\": [\n1,"));

  const Json text = "\"\\/\b\f\n\r\t\x01\x7f\u00e9\u20ac\U0001F600";
  CHECK(dump_python(text, 4, true) == R"("\"\\/\b\f\n\r\t\u0001\u007f\u00e9\u20ac\ud83d\ude00")");
  CHECK(dump_python(text, 4, false) == "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f\u00e9\u20ac\U0001F600\"");
  CHECK(parse(dump_python(text, 4, true)) == text);
  CHECK(parse(dump_python(text, 4, false)) == text);
  CHECK_THROWS_AS(dump_python(Json("\xff"), 4, true), Error);
}

TEST_CASE("parse_json: numbers keep their kind and their value", "[json]") {
  CHECK(parse("[1, 1.0, -0.0, 1e2]").dump() == "[1,1.0,-0.0,100.0]");
  CHECK(parse("9223372036854775807") == Json(std::numeric_limits<std::int64_t>::max()));
  CHECK(parse("-9223372036854775808") == Json(std::numeric_limits<std::int64_t>::min()));
  CHECK(parse("18446744073709551615") == Json(std::numeric_limits<std::uint64_t>::max()));
  CHECK(std::isnan(parse("NaN").get<double>()));
  CHECK(parse("[Infinity, -Infinity]")[1].get<double>() == -std::numeric_limits<double>::infinity());
  CHECK_THAT(refusal("18446744073709551616"), Catch::Contains("does not fit 64 bits"));
  CHECK_THAT(refusal("1e999"), Catch::Contains("outside the range of a double"));
}

TEST_CASE("parse_json: a message names file, line, column and reason", "[json]") {
  CHECK(refusal("{\n  \"\u00e9\": 1,\n  \"b\" 2}") ==
        "f.json: line 3 column 7: not valid JSON: expected ':' after a property name.");
  CHECK(refusal("") == "f.json: line 1 column 1: not valid JSON: the text ends where a value is expected.");
  CHECK_THAT(refusal("{\"a\": 1, \"b\": {\"a\": 2}, \"a\": 3}"),
             Catch::Contains("column 25: not valid JSON: the key \"a\" appears twice"));
  CHECK_THAT(refusal("[1, 2"), Catch::Contains("expected ',' or ']'"));
  CHECK_THAT(refusal("[1,]"), Catch::Contains("line 1 column 4: not valid JSON: expected a value"));
  CHECK_THAT(refusal("{\"a\": 1,}"), Catch::Contains("expected a property name in double quotes"));
  CHECK_THAT(refusal("{\"a\": 1"), Catch::Contains("expected ',' or '}'"));
  CHECK_THAT(refusal("1 2"), Catch::Contains("text after the end of the value"));
  CHECK_THAT(refusal("\"abc"), Catch::Contains("a string that does not end"));
  CHECK_THAT(refusal("\"a\nb\""), Catch::Contains("control character"));
  CHECK_THAT(refusal("\"\\x\""), Catch::Contains("unknown escape"));
  CHECK_THAT(refusal("\"\\u12\""), Catch::Contains("four hexadecimal digits"));
  CHECK_THAT(refusal("\"\\ud800\""), Catch::Contains("surrogate"));
  CHECK_THAT(refusal("\"\\udc00\\ud800\""), Catch::Contains("surrogate"));
  for (const char* text : {"01", "-", "1.", ".5", "1e", "+1", "tru", "'a'", "// x", "\xef\xbb\xbf{}"})
    CHECK_THAT(refusal(text), Catch::StartsWith("f.json: line 1 column"));
  for (const char* text : {"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\""})
    CHECK_THAT(refusal(text), Catch::Contains("column 2: not valid JSON: a byte that is not UTF-8"));
}

TEST_CASE("parse_json: depth, length and the number of keys are bounded", "[json]") {
  CHECK_NOTHROW(parse(std::string(128, '[') + std::string(128, ']')));
  CHECK_THAT(refusal(std::string(129, '[')), Catch::Contains("more than 128 levels"));
  CHECK_THAT(refusal(std::string(10'000'000, '[')), Catch::Contains("more than 128 levels"));
  CHECK_THAT(
      message_of([] { (void)parse_json("[1,2,3]", "f", ErrorKind::kDataset, {.max_bytes = 6}); }, ErrorKind::kDataset),
      Catch::Contains("JSON of 7 bytes; at most 6"));
  // 200,000 keys: quadratic look-ups would take minutes.
  std::string many = "{";
  for (int i = 0; i < 200'000; ++i) many += fmt::format("{}\"{}\":{}", i == 0 ? "" : ",", i, i);
  const Json value = parse(many + "}");
  CHECK(value.size() == 200'000);
  CHECK_THAT(refusal(many + ",\"7\":0}"), Catch::Contains("the key \"7\" appears twice"));
}

TEST_CASE("read_json: a truncated or missing file is named", "[json]") {
  const fs::path truncated = data("malformed/train_config_truncated/train_config.json");
  const std::string message = message_of([&] { (void)read_json(truncated, ErrorKind::kConfig); }, ErrorKind::kConfig);
  CHECK_THAT(message, Catch::StartsWith(truncated.string() + ": line 124 column "));
  CHECK_THAT(message_of([] { (void)read_json("/nonexistent/a.json", ErrorKind::kConfig); }, ErrorKind::kConfig),
             Catch::Equals("/nonexistent/a.json: cannot open for reading: No such file or directory."));
  CHECK_THAT(message_of([] { (void)read_json(LEROBOT_TEST_DATA, ErrorKind::kConfig); }, ErrorKind::kConfig),
             Catch::Contains("is not a regular file"));
}

}  // namespace lerobot::formats::test
