#include "lerobot/formats/pickle.hpp"

#include <cmath>

#include "support.hpp"

namespace lerobot::formats::test {
namespace {

using namespace std::string_literals;

constexpr PickleGlobal kAllowed[] = {{"collections", "OrderedDict"}, {"torch", "Size", true}, {"torch", "float32"}};

PickleDocument parse(std::string_view pickle) { return PickleDocument::parse(bytes_of(pickle), kAllowed, "p.pkl"); }
std::string refusal(std::string_view pickle) {
  return message_of([&] { (void)parse(pickle); });
}
PyValue value_of(std::string_view pickle) {
  const PickleDocument document = parse(pickle);
  return to_python(document.root());
}

}  // namespace

TEST_CASE("pickle_python: the byte forms of Python's pickler", "[pickle]") {
  const auto lr = "\x80\x02G\x3f\x1a\x36\xe2\xeb\x1c\x43\x2d."s;
  CHECK(pickle_python(0.0001) == lr);
  CHECK(pickle_python(PyValue::Tuple{{0.9, 0.999}}) ==
        "\x80\x02G\x3f\xec\xcc\xcc\xcc\xcc\xcc\xcdG\x3f\xef\xf7\xce\xd9\x16\x87\x2b\x86q\0."s);
  CHECK(pickle_python({}) == "\x80\x02N."s);
  CHECK(pickle_python(true) == "\x80\x02\x88."s);
  CHECK(pickle_python(false) == "\x80\x02\x89."s);
  CHECK(pickle_python(5) == "\x80\x02K\x05."s);
  CHECK(pickle_python(256) == "\x80\x02M\0\x01."s);
  CHECK(pickle_python(-1) == "\x80\x02J\xff\xff\xff\xff."s);
  CHECK(pickle_python(65536) == "\x80\x02J\0\0\x01\0."s);
  CHECK(pickle_python(std::int64_t{1} << 31) == "\x80\x02\x8a\x05\0\0\0\x80\0."s);
  CHECK(pickle_python(-(std::int64_t{1} << 31) - 1) == "\x80\x02\x8a\x05\xff\xff\xff\x7f\xff."s);
  CHECK(pickle_python(PyValue::List{}) == "\x80\x02]q\0."s);
  CHECK(pickle_python(PyValue::List{"ab"}) ==
        "\x80\x02]q\0X\x02\0\0\0abq\x01"
        "a."s);
  CHECK(pickle_python(PyValue::List{"a", "b"}) ==
        "\x80\x02]q\0(X\x01\0\0\0aq\x01X\x01\0\0\0bq\x02"
        "e."s);
  CHECK(pickle_python(PyValue::Dict{{"k", 1}}) == "\x80\x02}q\0X\x01\0\0\0kq\x01K\x01s."s);
  CHECK(pickle_python(PyValue::Tuple{}) == "\x80\x02)."s);
  CHECK(pickle_python(PyValue::Tuple{{1, 2, 3, 4}}) == "\x80\x02(K\x01K\x02K\x03K\x04tq\0."s);
}

TEST_CASE("to_python: plain values come back from their pickles", "[pickle]") {
  PyValue::List many;
  for (int i = 0; i < 2500; ++i) many.emplace_back(fmt::format("name.{}", i));
  for (const PyValue& value :
       {PyValue(), PyValue(true), PyValue(0), PyValue(255), PyValue(65535), PyValue(65536), PyValue(-1), PyValue(-129),
        PyValue(std::numeric_limits<std::int64_t>::min()), PyValue(std::numeric_limits<std::int64_t>::max()),
        PyValue(std::int64_t{1} << 39), PyValue(-(std::int64_t{1} << 39)), PyValue(-0.0), PyValue(1e300),
        PyValue("\u20ac"), PyValue(many),
        PyValue(PyValue::Tuple{{1, PyValue::List{PyValue::Dict{{"a", {}}, {2, 0.5}}}}})}) {
    CHECK(value_of(pickle_python(value)) == value);
  }
}

TEST_CASE("PickleDocument: protocol 4 with frames, memo and shared parts", "[pickle]") {
  // pickle.dumps((x := ["s", 1.5], x, {"k": b"ab"}, torch.Size((2, 3))), protocol=4), written by hand
  const auto pickle =
      "\x80\x04\x95\x44\0\0\0\0\0\0\0(]\x94(\x8c\x01s\x94G\x3f\xf8\0\0\0\0\0\0eh\0}\x94\x8c\x01k\x94"
      "C\x02"
      "ab\x94s"
      "\x8c\x05torch\x94\x8c\x04Size\x94\x93\x94K\x02K\x03\x86\x94\x85\x94R\x94t\x94.     "s;
  const auto exact = pickle.substr(0, pickle.find_last_not_of(' ') + 1);
  std::string framed = exact;
  framed[3] = static_cast<char>(exact.size() - 11);
  const PickleDocument document = parse(framed);
  const PickleRef root = document.root();
  REQUIRE(root.size() == 4);
  CHECK(root[0][0].text() == "s");
  CHECK(root[1][1].number() == 1.5);
  CHECK(root[2].at("k").bytes().size() == 2);
  CHECK(root[3].kind() == PickleKind::kTuple);
  CHECK(root[3][1].integer() == 3);
  CHECK(!root[2].find("x"));
  CHECK_THAT(message_of([&] { (void)root[2].at("x"); }), Catch::Contains("p.pkl: a dict has no key \"x\""));
  CHECK_THAT(message_of([&] { (void)root[4]; }), Catch::Contains("element 4 is expected in a tuple of 4"));
  CHECK_THAT(message_of([&] { (void)root[0].integer(); }),
             Catch::Contains("a list was found where an integer is expected"));
  framed[3] = static_cast<char>(exact.size());
  CHECK_THAT(refusal(framed), Catch::Contains("byte 2: the pickle is cut: a frame has"));
}

TEST_CASE("PickleDocument: a global that is not on the list is refused by name, and nothing runs", "[pickle]") {
  CHECK_THAT(refusal("\x80\x02"
                     "cos\nsystem\nX\x02\0\0\0ls\x85R."s),
             Catch::Equals("p.pkl: byte 2: the global \"os.system\" is not allowed here; nothing was executed."));
  CHECK_THAT(refusal("\x80\x04\x8c\x08"
                     "builtins\x94\x8c\x05print\x94\x93."s),
             Catch::Contains("\"builtins.print\" is not allowed"));
  CHECK_THAT(refusal("\x80\x02"
                     "ctorch\nSize.__class__\n."s),
             Catch::Contains("\"torch.Size.__class__\" is not allowed"));
  CHECK_THAT(refusal("\x80\x02"
                     "c\x1b[31m\nx\n."s),
             Catch::Contains("\"?[31m.x\""));
  const PickleDocument document = parse(
      "\x80\x02"
      "ccollections\nOrderedDict\n)R."s);
  CHECK(document.root().is_object_of({"collections", "OrderedDict"}));
  CHECK(document.root().arguments().size() == 0);
  CHECK(!document.root().state());
  CHECK(to_python(document.root()) == PyValue(PyValue::Dict{}));
}

TEST_CASE("PickleDocument: what is cut, unbalanced or of another kind is refused", "[pickle]") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "is cut"},
      {"\x80", "is cut"},
      {"hello", "begins with byte 0x80"},
      {"\x80\x01N.", "protocol 1; expected 2 to 5"},
      {"\x80\x06N.", "protocol 6"},
      {"\x80\x02N", "is cut"},
      {"\x80\x02.", "ends with 0 values"},
      {"\x80\x02NN.", "ends with 2 values"},
      {"\x80\x02(N.", "ends with 1 values"},
      {"\x80\x02N.x", "1 bytes follow the end"},
      {"\x80\x02K", "is cut"},
      {"\x80\x02X\xff\xff\xff\xff"
       "ab."s,
       "is cut: 4294967295 bytes are needed"},
      {"\x80\x02X\x01\0\0\0\xff."s, "not UTF-8"},
      {"\x80\x02\x86.", "2 values are needed, the stack has 0"},
      {"\x80\x02N(\x85.", "1 values are needed, the stack has 0"},
      {"\x80\x02t.", "a mark is needed"},
      {"\x80\x02Na.", "2 values are needed"},
      {"\x80\x02NNa.", "not a list or a dict"},
      {"\x80\x02}Na.", "not a list or a dict"},
      {"\x80\x02}(Nu.", "a dict key without a value"},
      {"\x80\x02h\0."s, "memo number 0; 0 are in use"},
      {"\x80\x02Nr\xff\xff\xff\x7f."s, "memo number 2147483647; 0 are in use"},
      {"\x80\x02q\0."s, "1 values are needed"},
      {"\x80\x02N)R.", "a call of something that is not a global"},
      {"\x80\x02"
       "ctorch\nfloat32\nNR.",
       "arguments of a call are not a tuple"},
      {"\x80\x02"
       "ctorch\nSize\n)R.",
       "not a tuple"},
      {"\x80\x02NNb.", "state for something that is not an object"},
      {"\x80\x02"
       "ctorch\nfloat32\n)\x81NbNb.",
       "has one already"},
      {"\x80\x02"
       "ctorch",
       "does not end"},
      {"\x80\x04NN\x93.", "name of a global is not a string"},
      {"\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\x01."s, "an integer of 9 bytes"},
      {"\x80\x02"
       "0.",
       "opcode 0x30"},
      {"\x80\x02"
       "i",
       "opcode 0x69"},
      {"\x80\x04\x8f.", "opcode 0x8f"}};
  for (const auto& [pickle, reason] : cases) {
    INFO(reason);
    CHECK_THAT(refusal(pickle), Catch::StartsWith("p.pkl: byte ") && Catch::Contains(reason));
  }
}

TEST_CASE("to_python: self-reference, deep nesting and growth by sharing are refused", "[pickle]") {
  CHECK_THAT(message_of([] {
               (void)value_of(
                   "\x80\x02]q\0h\0"
                   "a."s);
             }),
             Catch::Contains("deeper than 32 levels"));
  CHECK_NOTHROW(value_of("\x80\x02" + std::string(30, ']') + std::string(29, 'a') + "."));
  CHECK_THAT(message_of([] { (void)value_of("\x80\x02" + std::string(40, ']') + std::string(39, 'a') + "."); }),
             Catch::Contains("deeper than 32 levels"));
  // Thirty tuples, each of the one before twice: 2^30 values from 150 bytes.
  std::string bomb = "\x80\x02)q\0"s;
  for (char i = 0; i < 30; ++i) bomb += "h"s + i + "h" + i + "\x86q" + static_cast<char>(i + 1);
  // Everything but the last value must leave the stack: put all into one tuple.
  const std::string all = "\x80\x02(" + bomb.substr(2) + "t.";
  CHECK_NOTHROW(parse(all));
  CHECK_THAT(message_of([&] { (void)value_of(all); }), Catch::Contains("shared parts too often"));
  CHECK_THAT(message_of([] {
               (void)value_of(
                   "\x80\x02"
                   "ctorch\nfloat32\n."s);
             }),
             Catch::Contains("where plain data is expected"));
  CHECK_THAT(message_of([] {
               (void)value_of(
                   "\x80\x02"
                   "ctorch\nfloat32\n)\x81."s);
             }),
             Catch::Contains("an object of torch.float32"));
}

TEST_CASE("PickleDocument: a list that grows in turns with others stays whole", "[pickle]") {
  std::string pickle = "\x80\x02(]q\0]q\x01"s;
  for (int i = 0; i < 300; ++i)
    pickle += "h\0K"s + static_cast<char>(i % 251) +
              "ah\x01K\x07"
              "a"s;
  pickle += "t.";
  const PickleDocument document = parse(pickle);
  const PickleRef list = document.root()[0];
  REQUIRE(list.size() == 300);
  for (std::size_t i = 0; i < 300; ++i) CHECK(list[i].integer() == static_cast<std::int64_t>(i % 251));
  CHECK(document.root()[1].size() == 300);
}

}  // namespace lerobot::formats::test
