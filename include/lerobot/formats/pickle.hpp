#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lerobot/core/error.hpp"

namespace lerobot::formats {

/// A class or function of Python that a pickle names.
struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  bool gives_its_tuple = false;  ///< called with one tuple it gives an equal one: torch.Size, which is read as a tuple
  friend bool operator==(const PickleGlobal& a, const PickleGlobal& b) {
    return a.module == b.module && a.name == b.name;
  }
};

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kBytes,
  kTuple,
  kList,
  kDict,
  kGlobal,        ///< a name, not called
  kObject,        ///< a class or function, what it was to be called with, and the state given to the result
  kPersistentId,  ///< a reference to something outside the pickle
};

class PickleDocument;

/// A value of a PickleDocument, which must outlive it. Values may be shared, and a hostile list may contain itself:
/// walk along a known structure, or with to_python(), which counts.
///
/// An accessor that does not fit the kind throws: Error{kind of the document} naming where, what was found and
/// expected.
class PickleRef {
 public:
  [[nodiscard]] PickleKind kind() const { return slot_.kind; }
  [[nodiscard]] bool is_none() const { return slot_.kind == PickleKind::kNone; }
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;          ///< a float, or an integer as one
  [[nodiscard]] std::string_view text() const;  ///< UTF-8, inside the input
  [[nodiscard]] std::span<const std::byte> bytes() const;

  /// Elements of a tuple or list, pairs of a dict.
  [[nodiscard]] std::size_t size() const;
  /// Element of a tuple or list.
  [[nodiscard]] PickleRef operator[](std::size_t index) const;
  [[nodiscard]] PickleRef key(std::size_t index) const;
  [[nodiscard]] PickleRef value(std::size_t index) const;
  /// The value under a string key of a dict.
  [[nodiscard]] std::optional<PickleRef> find(std::string_view key) const;
  [[nodiscard]] PickleRef at(std::string_view key) const;

  /// The name itself, or the class or function of an object.
  [[nodiscard]] const PickleGlobal& global() const;
  [[nodiscard]] bool is_object_of(const PickleGlobal& type) const;
  [[nodiscard]] PickleRef arguments() const;             ///< of an object: a tuple
  [[nodiscard]] std::optional<PickleRef> state() const;  ///< of an object
  [[nodiscard]] PickleRef persistent_id() const;
  [[nodiscard]] const PickleDocument& document() const { return *document_; }

 private:
  friend class PickleDocument;
  friend class Unpickler;
  struct Slot {
    std::uint64_t payload = 0;  ///< the number itself, a place in the input, or an index
    std::uint32_t count = 0;    ///< of a string, bytes or tuple
    PickleKind kind = PickleKind::kNone;
  };
  PickleRef(const PickleDocument* document, Slot slot) : document_(document), slot_(slot) {}
  [[noreturn]] void expected(std::string_view what) const;
  [[nodiscard]] std::span<const Slot> elements() const;

  const PickleDocument* document_;
  Slot slot_;
};

/// What a Python pickle says, read without running anything.
///
/// Takes protocols 2 to 5 and only the opcodes that pickles of plain data and of classes need. Classes and functions
/// are names: they must be on a list and are never called. Time and memory are linear in the input; strings stay in it.
class PickleDocument {
 public:
  /// Reads a whole pickle. `bytes` and `allowed` must outlive the document; `where` is for messages.
  ///
  /// Throws: Error{kind} naming `where`, the position, and the global or opcode that was refused.
  static PickleDocument parse(std::span<const std::byte> bytes, std::span<const PickleGlobal> allowed,
                              std::string where, ErrorKind kind = ErrorKind::kCheckpoint);

  [[nodiscard]] PickleRef root() const { return {this, root_}; }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] ErrorKind error_kind() const { return kind_; }
  [[nodiscard]] std::size_t nbytes() const { return input_.size(); }

 private:
  friend class PickleRef;
  friend class Unpickler;
  using Slot = PickleRef::Slot;
  struct Sequence {  // a list or dict, which can grow: a range of pool_
    std::uint64_t begin = 0;
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;
  };
  struct Object {
    Slot global, arguments, state;
    bool has_state = false;
  };
  PickleDocument(std::span<const std::byte> input, std::span<const PickleGlobal> allowed, std::string where,
                 ErrorKind kind)
      : input_(input), allowed_(allowed), where_(std::move(where)), kind_(kind) {}

  std::span<const std::byte> input_;
  std::span<const PickleGlobal> allowed_;
  std::string where_;
  ErrorKind kind_;
  std::vector<Slot> pool_;
  std::vector<Sequence> sequences_;
  std::vector<Object> objects_;
  Slot root_;
};

/// A plain value of Python: what the settings of an optimizer are made of.
struct PyValue {
  struct Tuple {
    std::vector<PyValue> items;
    friend bool operator==(const Tuple&, const Tuple&);
  };
  using List = std::vector<PyValue>;
  using Dict = std::vector<std::pair<PyValue, PyValue>>;  ///< in insertion order
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Tuple, List, Dict> data;

  PyValue() = default;  ///< None
  PyValue(bool value) : data(value) {}
  PyValue(int value) : data(std::int64_t{value}) {}
  PyValue(std::int64_t value) : data(value) {}
  PyValue(double value) : data(value) {}
  PyValue(const char* value) : data(std::string(value)) {}
  PyValue(std::string value) : data(std::move(value)) {}
  PyValue(Tuple value) : data(std::move(value)) {}
  PyValue(List value) : data(std::move(value)) {}
  PyValue(Dict value) : data(std::move(value)) {}
  [[nodiscard]] bool is_none() const { return data.index() == 0; }
  friend bool operator==(const PyValue&, const PyValue&);
};

/// A value of a pickle as plain data. An OrderedDict without items counts as an empty dict.
///
/// Throws: Error when it holds anything else, is nested deeper than 32 levels, or expands to more than its file
/// justifies.
[[nodiscard]] PyValue to_python(PickleRef value);

/// The pickle that Python's `pickle.dumps(value, protocol=2)` gives, byte for byte if no two equal strings of the value
/// are the same object there.
[[nodiscard]] std::string pickle_python(const PyValue& value);

}  // namespace lerobot::formats
