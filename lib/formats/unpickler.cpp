#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "formats/utf8.hpp"
#include "lerobot/formats/pickle.hpp"

namespace lerobot::formats {

// The stack machine that a pickle is a program for. Its values are 16 bytes each and live in one pool.
class Unpickler {
 public:
  explicit Unpickler(PickleDocument& document) : document_(document), input_(document.input_) {}

  void run() {
    if (take_byte() != 0x80) refuse("a pickle of protocol 2 or later begins with byte 0x80");
    const unsigned protocol = take_byte();
    if (protocol < 2 || protocol > 5) refuse(fmt::format("pickle protocol {}; expected 2 to 5", protocol));
    while (true) {
      start_ = at_;
      const unsigned code = take_byte();
      if (code == '.') break;
      step(code);
    }
    if (stack_.size() != 1 || !marks_.empty())
      refuse(fmt::format("the pickle ends with {} values on its stack; expected 1", stack_.size()));
    if (at_ != input_.size()) refuse(fmt::format("{} bytes follow the end of the pickle", input_.size() - at_));
    document_.root_ = stack_.back();
  }

 private:
  using Slot = PickleRef::Slot;

  void step(unsigned code) {
    switch (code) {
      case 0x95: {  // FRAME: a hint for buffered reading
        const std::uint64_t nbytes = take<std::uint64_t>();
        if (nbytes > input_.size() - at_)
          refuse(fmt::format("the pickle is cut: a frame has {} bytes, {} are left", nbytes, input_.size() - at_));
        return;
      }
      case 'N':
        return push({0, 0, PickleKind::kNone});
      case 0x88:
        return push({1, 0, PickleKind::kBool});
      case 0x89:
        return push({0, 0, PickleKind::kBool});
      case 'K':
        return push_integer(take<std::uint8_t>());
      case 'M':
        return push_integer(take<std::uint16_t>());
      case 'J':
        return push_integer(take<std::int32_t>());
      case 0x8a:
        return long_integer();
      case 'G':
        return push({big_endian(take<std::uint64_t>()), 0, PickleKind::kFloat});
      case 0x8c:
        return string(take<std::uint8_t>());
      case 'X':
        return string(take<std::uint32_t>());
      case 'C':
        return push_view(take<std::uint8_t>(), PickleKind::kBytes);
      case 'B':
        return push_view(take<std::uint32_t>(), PickleKind::kBytes);
      case '(':
        return marks_.push_back(stack_.size());
      case ')':
        return push({0, 0, PickleKind::kTuple});
      case 0x85:
        return tuple(last(1));
      case 0x86:
        return tuple(last(2));
      case 0x87:
        return tuple(last(3));
      case 't':
        return tuple(pop_mark());
      case ']':
        return push_sequence(PickleKind::kList);
      case '}':
        return push_sequence(PickleKind::kDict);
      case 'a':
        return extend(last(1), PickleKind::kList);
      case 'e':
        return extend(pop_mark(), PickleKind::kList);
      case 's':
        return extend(last(2), PickleKind::kDict);
      case 'u':
        return extend(pop_mark(), PickleKind::kDict);
      case 'c':
        return named_global();
      case 0x93:
        return stacked_global();
      case 0x81:
      case 'R':
        return object();
      case 'b':
        return build();
      case 'Q':
        return persistent_id();
      case 0x94:
        return remember(memo_.size());
      case 'q':
        return remember(take<std::uint8_t>());
      case 'r':
        return remember(take<std::uint32_t>());
      case 'h':
        return recall(take<std::uint8_t>());
      case 'j':
        return recall(take<std::uint32_t>());
      default:
        refuse(fmt::format("opcode 0x{:02x}, which plain data does not need, is not allowed", code));
    }
  }

  [[noreturn]] void refuse(std::string_view reason) const {
    fail(document_.kind_, "{}: byte {}: {}.", document_.where_, start_, reason);
  }

  unsigned take_byte() { return take<std::uint8_t>(); }

  template <typename Number>
  Number take() {
    Number value{};
    need(sizeof(value));
    std::memcpy(&value, input_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }

  void need(std::uint64_t nbytes) const {
    if (nbytes > input_.size() - at_)
      refuse(fmt::format("the pickle is cut: {} bytes are needed, {} are left", nbytes, input_.size() - at_));
  }

  static std::uint64_t big_endian(std::uint64_t value) { return __builtin_bswap64(value); }

  void push(Slot slot) { stack_.push_back(slot); }
  void push_integer(std::int64_t value) { push({std::bit_cast<std::uint64_t>(value), 0, PickleKind::kInt}); }

  void long_integer() {
    const unsigned nbytes = take_byte();
    need(nbytes);
    if (nbytes > 8) refuse(fmt::format("an integer of {} bytes; at most 8 are read", nbytes));
    std::uint64_t value = 0;
    std::memcpy(&value, input_.data() + at_, nbytes);
    at_ += nbytes;
    if (nbytes > 0 && nbytes < 8 && (value >> (8 * nbytes - 1) & 1) != 0) value |= ~std::uint64_t{0} << (8 * nbytes);
    push({value, 0, PickleKind::kInt});
  }

  void push_view(std::uint32_t nbytes, PickleKind kind) {
    need(nbytes);
    push({at_, nbytes, kind});
    at_ += nbytes;
  }

  void string(std::uint32_t nbytes) {
    push_view(nbytes, PickleKind::kString);
    if (find_invalid_utf8(view(stack_.back()))) refuse("a string that is not UTF-8");
  }

  [[nodiscard]] std::string_view view(Slot slot) const {
    return {reinterpret_cast<const char*>(input_.data()) + slot.payload, slot.count};
  }

  // What lies below the last mark is out of reach.
  void need_values(std::size_t count) const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count)
      refuse(fmt::format("{} values are needed, the stack has {}", count, stack_.size() - floor));
  }

  std::size_t last(std::size_t count) const {
    need_values(count);
    return count;
  }

  std::size_t pop_mark() {
    if (marks_.empty()) refuse("a mark is needed, the stack has none");
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }

  [[nodiscard]] std::span<const Slot> top(std::size_t count) const { return std::span(stack_).last(count); }
  void drop(std::size_t count) { stack_.resize(stack_.size() - count); }

  std::uint32_t checked_count(std::size_t count) const {
    if (count > std::numeric_limits<std::uint32_t>::max()) refuse("more than 4,294,967,295 elements");
    return static_cast<std::uint32_t>(count);
  }

  void tuple(std::size_t count) {
    const Slot made{document_.pool_.size(), checked_count(count), PickleKind::kTuple};
    const auto items = top(count);
    document_.pool_.insert(document_.pool_.end(), items.begin(), items.end());
    drop(count);
    push(made);
  }

  void push_sequence(PickleKind kind) {
    push({document_.sequences_.size(), 0, kind});
    document_.sequences_.emplace_back();
  }

  void extend(std::size_t count, PickleKind kind) {
    const auto items = top(count);
    need_values(count + 1);
    const Slot owner = stack_[stack_.size() - count - 1];
    if (owner.kind != kind) refuse("elements for something that is not a list or a dict");
    if (kind == PickleKind::kDict && count % 2 != 0) refuse("a dict key without a value");
    auto& pool = document_.pool_;
    auto& sequence = document_.sequences_[owner.payload];
    const std::size_t total = checked_count(sequence.count + count);
    if (total > sequence.capacity) {
      if (sequence.begin + sequence.capacity == pool.size()) {  // the last one of the pool grows where it is
        pool.resize(pool.size() + total - sequence.capacity);
        sequence.capacity = checked_count(total);
      } else {
        const std::size_t begin = pool.size();
        const std::size_t capacity = checked_count(std::max<std::size_t>(total, 2 * std::size_t{sequence.count}));
        pool.resize(begin + capacity);
        std::copy_n(pool.begin() + static_cast<std::ptrdiff_t>(sequence.begin), sequence.count,
                    pool.begin() + static_cast<std::ptrdiff_t>(begin));
        sequence.begin = begin;
        sequence.capacity = checked_count(capacity);
      }
    }
    std::copy(items.begin(), items.end(), pool.begin() + static_cast<std::ptrdiff_t>(sequence.begin + sequence.count));
    sequence.count = checked_count(total);
    drop(count);
  }

  std::string_view take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(input_.data()) + at_, input_.size() - at_);
    const std::size_t nbytes = rest.substr(0, 1024).find('\n');
    if (nbytes == std::string_view::npos) refuse("the name of a global does not end");
    at_ += nbytes + 1;
    return rest.substr(0, nbytes);
  }

  void named_global() {
    const std::string_view module = take_line();
    push_global(module, take_line());
  }

  void stacked_global() {
    need_values(2);
    const Slot module = stack_[stack_.size() - 2];
    const Slot name = stack_.back();
    if (module.kind != PickleKind::kString || name.kind != PickleKind::kString)
      refuse("the name of a global is not a string");
    drop(2);
    push_global(view(module), view(name));
  }

  void push_global(std::string_view module, std::string_view name) {
    const auto& allowed = document_.allowed_;
    const auto found = std::find(allowed.begin(), allowed.end(), PickleGlobal{module, name});
    if (found == allowed.end())
      refuse(fmt::format("the global \"{}.{}\" is not allowed here; nothing was executed", printable(module),
                         printable(name)));
    push({static_cast<std::uint64_t>(found - allowed.begin()), 0, PickleKind::kGlobal});
  }

  static std::string printable(std::string_view name) {
    std::string text(name.substr(0, 200));
    for (char& c : text)
      if (c < 0x20 || c > 0x7E) c = '?';
    return text;
  }

  void object() {
    need_values(2);
    const Slot global = stack_[stack_.size() - 2];
    const Slot arguments = stack_.back();
    if (global.kind != PickleKind::kGlobal) refuse("a call of something that is not a global");
    if (arguments.kind != PickleKind::kTuple) refuse("the arguments of a call are not a tuple");
    drop(2);
    if (document_.allowed_[global.payload].gives_its_tuple) {
      const Slot inner = arguments.count == 1 ? document_.pool_[arguments.payload] : Slot{};
      if (inner.kind != PickleKind::kTuple) refuse("a torch.Size of something that is not a tuple");
      return push(inner);
    }
    push({document_.objects_.size(), 0, PickleKind::kObject});
    document_.objects_.push_back({global, arguments, {}, false});
  }

  void build() {
    need_values(2);
    const Slot owner = stack_[stack_.size() - 2];
    if (owner.kind != PickleKind::kObject) refuse("state for something that is not an object");
    auto& object = document_.objects_[owner.payload];
    if (object.has_state) refuse("state for an object that has one already");
    object.state = stack_.back();
    object.has_state = true;
    drop(1);
  }

  void persistent_id() {
    need_values(1);
    const Slot made{document_.pool_.size(), 1, PickleKind::kPersistentId};
    document_.pool_.push_back(stack_.back());
    stack_.back() = made;
  }

  void remember(std::size_t number) {
    need_values(1);
    // Python's pickler numbers what it remembers from 0 on; a gap would let a few bytes ask for any amount of memory.
    if (number > memo_.size()) refuse(fmt::format("memo number {}; {} are in use", number, memo_.size()));
    if (number == memo_.size()) {
      memo_.push_back(stack_.back());
    } else {
      memo_[number] = stack_.back();
    }
  }

  void recall(std::size_t number) {
    if (number >= memo_.size()) refuse(fmt::format("memo number {}; {} are in use", number, memo_.size()));
    push(memo_[number]);
  }

  PickleDocument& document_;
  std::span<const std::byte> input_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;  // of the opcode in hand
  std::vector<Slot> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Slot> memo_;
};

PickleDocument PickleDocument::parse(std::span<const std::byte> bytes, std::span<const PickleGlobal> allowed,
                                     std::string where, ErrorKind kind) {
  PickleDocument document(bytes, allowed, std::move(where), kind);
  Unpickler(document).run();
  return document;
}

}  // namespace lerobot::formats
