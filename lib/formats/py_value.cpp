#include <algorithm>
#include <bit>

#include "formats/pickle_emitter.hpp"
#include "lerobot/formats/pickle.hpp"

namespace lerobot::formats {
namespace {

constexpr int kMaxDepth = 32;
constexpr PickleGlobal kOrderedDict{"collections", "OrderedDict"};

class Expander {
 public:
  explicit Expander(PickleRef root, const std::string& where, ErrorKind kind, std::size_t nbytes)
      : where_(where), kind_(kind), budget_(16 * nbytes), root_(root) {}

  PyValue run() { return expand(root_, 0); }

 private:
  PyValue expand(PickleRef value, int depth) {
    if (depth > kMaxDepth) fail(kind_, "{}: a value is nested deeper than {} levels.", where_, kMaxDepth);
    spend(1);
    switch (value.kind()) {
      case PickleKind::kNone:
        return {};
      case PickleKind::kBool:
        return value.boolean();
      case PickleKind::kInt:
        return value.integer();
      case PickleKind::kFloat:
        return value.number();
      case PickleKind::kString:
        spend(value.text().size());
        return std::string(value.text());
      case PickleKind::kTuple:
        return PyValue::Tuple{items(value, depth)};
      case PickleKind::kList:
        return items(value, depth);
      case PickleKind::kDict: {
        PyValue::Dict pairs;
        for (std::size_t i = 0; i < value.size(); ++i)
          pairs.emplace_back(expand(value.key(i), depth + 1), expand(value.value(i), depth + 1));
        return pairs;
      }
      case PickleKind::kObject:
        if (value.is_object_of(kOrderedDict) && value.arguments().size() == 0 && !value.state()) return PyValue::Dict{};
        fail(kind_, "{}: an object of {}.{} was found where plain data is expected.", where_, value.global().module,
             value.global().name);
      case PickleKind::kBytes:
      case PickleKind::kGlobal:
      case PickleKind::kPersistentId:
        break;
    }
    fail(kind_, "{}: bytes, a global or a reference was found where plain data is expected.", where_);
  }

  std::vector<PyValue> items(PickleRef value, int depth) {
    std::vector<PyValue> out;
    for (std::size_t i = 0; i < value.size(); ++i) out.push_back(expand(value[i], depth + 1));
    return out;
  }

  // A few shared tuples inside one another stand for any number of values.
  void spend(std::size_t amount) {
    if (amount > budget_) fail(kind_, "{}: a value refers to itself or to shared parts too often.", where_);
    budget_ -= amount;
  }

  const std::string& where_;
  ErrorKind kind_;
  std::size_t budget_;
  PickleRef root_;
};

class PythonPickler {
 public:
  std::string run(const PyValue& value) {
    write(value);
    return out_.finish();
  }

 private:
  // Python's pickler puts at most so many elements behind one mark.
  static constexpr std::size_t kBatch = 1000;

  void write(const PyValue& value) {
    std::visit([this](const auto& data) { write_data(data); }, value.data);
  }

  void write_data(std::monostate) { out_.none(); }
  void write_data(bool value) { out_.boolean(value); }
  void write_data(std::int64_t value) { out_.integer(value); }
  void write_data(double value) { out_.number(value); }
  void write_data(const std::string& value) {
    out_.string(value);
    out_.memoize();
  }

  void write_data(const PyValue::Tuple& value) {
    if (value.items.size() > 3) out_.mark();
    for (const PyValue& item : value.items) write(item);
    out_.tuple(value.items.size());
    if (!value.items.empty()) out_.memoize();
  }

  void write_data(const PyValue::List& value) {
    out_.empty_list();
    out_.memoize();
    batches(
        value, [this](const PyValue& item) { write(item); }, &PickleEmitter::append, &PickleEmitter::appends);
  }

  void write_data(const PyValue::Dict& value) {
    out_.empty_dict();
    out_.memoize();
    const auto pair = [this](const std::pair<PyValue, PyValue>& item) {
      write(item.first);
      write(item.second);
    };
    batches(value, pair, &PickleEmitter::set_item, &PickleEmitter::set_items);
  }

  template <typename Items, typename WriteItem>
  void batches(const Items& items, WriteItem write_item, void (PickleEmitter::*one)(), void (PickleEmitter::*many)()) {
    if (items.size() == 1) {
      write_item(items.front());
      (out_.*one)();
      return;
    }
    for (std::size_t begin = 0; begin < items.size(); begin += kBatch) {
      out_.mark();
      for (std::size_t i = begin; i < std::min(begin + kBatch, items.size()); ++i) write_item(items[i]);
      (out_.*many)();
    }
  }

  PickleEmitter out_{2};
};

}  // namespace

bool operator==(const PyValue::Tuple& a, const PyValue::Tuple& b) { return a.items == b.items; }
bool operator==(const PyValue& a, const PyValue& b) { return a.data == b.data; }

std::string pickle_python(const PyValue& value) { return PythonPickler().run(value); }

PyValue to_python(PickleRef value) {
  const PickleDocument& document = value.document();
  return Expander(value, document.where(), document.error_kind(), document.nbytes()).run();
}

}  // namespace lerobot::formats
