#include "lerobot/config/value.hpp"

#include <cmath>
#include <limits>

#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;

namespace {

Json decode(FieldType type, const std::string& text, bool optional = false, int tuple_size = -1) {
  Field field{.name = "x", .type = type, .default_value = {}, .optional = optional, .tuple_size = tuple_size};
  return decode_value(field, "block.x", Json(text));
}

std::string refusal(FieldType type, const std::string& text, bool optional = false, int tuple_size = -1) {
  try {
    return "accepted: " + decode(type, text, optional, tuple_size).dump();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
}

}  // namespace

TEST_CASE("decode_value: bools take YAML's words and nothing else", "[value]") {
  for (const char* yes : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
    CHECK(decode(FieldType::kBool, yes) == true);
  for (const char* no : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
    CHECK(decode(FieldType::kBool, no) == false);
  for (const char* bad : {"1", "0", "null", "", "tRUE", "y", "\"true\"", " true"}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(FieldType::kBool, bad), Catch::StartsWith("`block.x`: ") && Catch::Contains("into a bool"));
  }
}

TEST_CASE("decode_value: ints are digits with a sign and single underscores", "[value]") {
  CHECK(decode(FieldType::kInt, "1_000") == 1000);
  CHECK(decode(FieldType::kInt, "-3") == -3);
  CHECK(decode(FieldType::kInt, "+7") == 7);
  CHECK(decode(FieldType::kInt, "\"12\"") == 12);
  CHECK(decode(FieldType::kInt, "9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(decode(FieldType::kInt, "-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  for (const char* bad :
       {"1e3", "100.0", "abc", "true", "null", "", "-", "1__0", "_1", "1_", "9223372036854775808", "1 2", "\"\""}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(FieldType::kInt, bad), Catch::Contains("`block.x`") && Catch::Contains("into an int"));
  }
  CHECK(refusal(FieldType::kInt, "abc") == "`block.x`: Couldn't parse 'abc' into an int");
}

TEST_CASE("decode_value: floats", "[value]") {
  CHECK(decode(FieldType::kFloat, "5") == 5.0);
  CHECK(decode(FieldType::kFloat, "5").is_number_float());
  CHECK(decode(FieldType::kFloat, "1e-4") == 1e-4);
  CHECK(decode(FieldType::kFloat, "1E-3") == 1e-3);
  CHECK(decode(FieldType::kFloat, ".5") == 0.5);
  CHECK(decode(FieldType::kFloat, "-2.") == -2.0);
  CHECK(std::isinf(decode(FieldType::kFloat, "inf").get<double>()));
  CHECK(decode(FieldType::kFloat, "-inf").get<double>() < 0);
  CHECK(std::isnan(decode(FieldType::kFloat, "nan").get<double>()));
  CHECK(decode(FieldType::kFloat, "1e-400").get<double>() == 0.0);
  for (const char* bad : {"abc", "", "1e", "0x10", "1e999", "--1", "+-1", "nan(1)", "true", "null", "1,5", "."}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(FieldType::kFloat, bad), Catch::Contains("`block.x`") && Catch::Contains("into a float"));
  }
}

TEST_CASE("decode_value: text stays as it is, apart from one pair of JSON quotes", "[value]") {
  for (const char* same :
       {"1.50", "no", "true", "null", "", " a ", "[a", "None", "\"open", "\"a\" b\"", "^(?!x).*[0-9]$"})
    CHECK(decode(FieldType::kString, same) == same);
  CHECK(decode(FieldType::kString, "\"null\"") == "null");
  CHECK(decode(FieldType::kString, "\"a\\n\\u00e4\"") == "a\nä");
  CHECK_THAT(refusal(FieldType::kString, "\xff\xfe"), Catch::Contains("into a str"));
}

TEST_CASE("decode_value: null is for optional settings, in two spellings", "[value]") {
  for (const FieldType type : {FieldType::kInt, FieldType::kString, FieldType::kIntList, FieldType::kBool}) {
    CHECK(decode(type, "null", true).is_null());
    CHECK(decode(type, "~", true).is_null());
  }
  CHECK(decode(FieldType::kString, "None", true) == "None");
  CHECK(decode(FieldType::kString, "", true) == "");
  CHECK(decode(FieldType::kString, "\"null\"", true) == "null");
  CHECK_THAT(refusal(FieldType::kInt, "None", true), Catch::Contains("into an int"));
  CHECK_THAT(refusal(FieldType::kInt, "", true), Catch::Contains("into an int"));
}

TEST_CASE("decode_value: lists are JSON or YAML flow lists", "[value]") {
  CHECK(decode(FieldType::kIntList, "[0,1]") == Json({0, 1}));
  CHECK(decode(FieldType::kIntList, "[0, 1]") == Json({0, 1}));
  CHECK(decode(FieldType::kIntList, "[0,\"1\"]") == Json({0, 1}));
  CHECK(decode(FieldType::kIntList, "[]") == Json::array());
  CHECK(decode(FieldType::kStringList, "[\"A\",\"B\"]") == Json({"A", "B"}));
  CHECK(decode(FieldType::kStringList, "[A, B c]") == Json({"A", "B c"}));
  CHECK(decode(FieldType::kStringList, "['it''s', 1.50]") == Json({"it's", "1.50"}));
  for (const char* bad : {"3", "", "[0", "0]", "[0]]", "[,]", "{}", "null"}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(FieldType::kIntList, bad), Catch::Contains("`block.x`") && Catch::Contains("list"));
  }
  CHECK(refusal(FieldType::kIntList, "[0, x]") == "`block.x`: item 1: Couldn't parse 'x' into an int");
}

TEST_CASE("decode_value: a tuple has its number of items", "[value]") {
  CHECK(decode(FieldType::kFloatList, "[0.9, 0.999]", false, 2) == Json({0.9, 0.999}));
  CHECK(refusal(FieldType::kFloatList, "[0.9]", false, 2) == "`block.x`: Expected 2 items, got 1");
}

TEST_CASE("decode_value: list or text, where a regular expression passes unchanged", "[value]") {
  CHECK(decode(FieldType::kStringListOrString, "[a, b]") == Json({"a", "b"}));
  CHECK(decode(FieldType::kStringListOrString, "[a-z]+.*(q|v)") == "[a-z]+.*(q|v)");
  CHECK(decode(FieldType::kStringListOrString, ".*(linear1|linear2)") == ".*(linear1|linear2)");
  CHECK(decode(FieldType::kStringListOrString, "all-linear") == "all-linear");
}

TEST_CASE("decode_value: maps of text", "[value]") {
  CHECK(decode(FieldType::kStringMap, "{\"a\":\"b\"}") == Json{{"a", "b"}});
  CHECK(decode(FieldType::kStringMap, "{a: 1.0, c: true}") == Json{{"a", "1.0"}, {"c", "true"}});
  CHECK(decode(FieldType::kStringMap, "{}") == Json::object());
  for (const char* bad : {"a", "[a]", "{a}", "{a: {b: c}}", "{a: 1, a: 2}", ""}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(FieldType::kStringMap, bad), Catch::Contains("`block.x`"));
  }
}

TEST_CASE("decode_value: a JSON file means what a flag means", "[value]") {
  const auto from_file = [](FieldType type, const Json& value) {
    return decode_value({.name = "x", .type = type, .default_value = {}}, "x", tokens_from_json(value));
  };
  CHECK(from_file(FieldType::kInt, 5) == 5);
  CHECK(from_file(FieldType::kInt, "12") == 12);
  CHECK(from_file(FieldType::kFloat, 1e-5) == 1e-5);
  CHECK(from_file(FieldType::kString, "null") == "null");
  CHECK(from_file(FieldType::kString, "\"quoted\"") == "\"quoted\"");
  CHECK_THROWS_WITH(from_file(FieldType::kInt, 100.0), "`x`: Couldn't parse '100.0' into an int");
  CHECK_THROWS_WITH(from_file(FieldType::kInt, "ten"), "`x`: Couldn't parse 'ten' into an int");
  CHECK_THROWS_WITH(from_file(FieldType::kInt, Json::array({1})), Catch::Contains("into an int"));
  CHECK_THROWS_WITH(from_file(FieldType::kBool, 1), Catch::Contains("into a bool"));
  CHECK_THROWS_WITH(from_file(FieldType::kString, nullptr), Catch::Contains("into a str"));
  CHECK_THROWS_WITH(from_file(FieldType::kIntList, "[0]"), Catch::Contains("list"));
}

TEST_CASE("tokens_from_flow: depth has a limit", "[value]") {
  CHECK(tokens_from_flow(std::string(60, '[') + std::string(60, ']')));
  CHECK_FALSE(tokens_from_flow(std::string(100'000, '[')));
  CHECK_FALSE(tokens_from_flow("[\"\\"));
}
