#include "lerobot/formats/pickle.hpp"

#include <array>
#include <bit>

#include "formats/pickle_emitter.hpp"

namespace lerobot::formats {
namespace {

constexpr std::array<std::string_view, 12> kKindNames{"None",     "a bool",   "an integer", "a float",
                                                      "a string", "bytes",    "a tuple",    "a list",
                                                      "a dict",   "a global", "an object",  "a persistent id"};

}  // namespace

void PickleRef::expected(std::string_view what) const {
  fail(document_->kind_, "{}: {} was found where {} is expected.", document_->where_,
       kKindNames[static_cast<std::size_t>(slot_.kind)], what);
}

bool PickleRef::boolean() const {
  if (slot_.kind != PickleKind::kBool) expected("a bool");
  return slot_.payload != 0;
}

std::int64_t PickleRef::integer() const {
  if (slot_.kind != PickleKind::kInt) expected("an integer");
  return std::bit_cast<std::int64_t>(slot_.payload);
}

double PickleRef::number() const {
  if (slot_.kind == PickleKind::kInt) return static_cast<double>(integer());
  if (slot_.kind != PickleKind::kFloat) expected("a number");
  return std::bit_cast<double>(slot_.payload);
}

std::string_view PickleRef::text() const {
  if (slot_.kind != PickleKind::kString) expected("a string");
  return {reinterpret_cast<const char*>(document_->input_.data()) + slot_.payload, slot_.count};
}

std::span<const std::byte> PickleRef::bytes() const {
  if (slot_.kind != PickleKind::kBytes) expected("bytes");
  return document_->input_.subspan(slot_.payload, slot_.count);
}

std::span<const PickleRef::Slot> PickleRef::elements() const {
  if (slot_.kind == PickleKind::kTuple) return std::span(document_->pool_).subspan(slot_.payload, slot_.count);
  if (slot_.kind != PickleKind::kList && slot_.kind != PickleKind::kDict) expected("a tuple, list or dict");
  const auto& sequence = document_->sequences_[slot_.payload];
  return std::span(document_->pool_).subspan(sequence.begin, sequence.count);
}

std::size_t PickleRef::size() const {
  return slot_.kind == PickleKind::kDict ? elements().size() / 2 : elements().size();
}

PickleRef PickleRef::operator[](std::size_t index) const {
  if (slot_.kind == PickleKind::kDict) expected("a tuple or list");
  const auto all = elements();
  if (index >= all.size())
    fail(document_->kind_, "{}: element {} is expected in {} of {}.", document_->where_, index,
         kKindNames[static_cast<std::size_t>(slot_.kind)], all.size());
  return {document_, all[index]};
}

PickleRef PickleRef::key(std::size_t index) const {
  if (slot_.kind != PickleKind::kDict) expected("a dict");
  return {document_, elements()[2 * index]};
}

PickleRef PickleRef::value(std::size_t index) const {
  if (slot_.kind != PickleKind::kDict) expected("a dict");
  return {document_, elements()[2 * index + 1]};
}

std::optional<PickleRef> PickleRef::find(std::string_view name) const {
  if (slot_.kind != PickleKind::kDict) expected("a dict");
  for (std::size_t i = 0; i < size(); ++i)
    if (key(i).kind() == PickleKind::kString && key(i).text() == name) return value(i);
  return std::nullopt;
}

PickleRef PickleRef::at(std::string_view name) const {
  const auto found = find(name);
  if (!found) fail(document_->kind_, "{}: a dict has no key \"{}\".", document_->where_, name);
  return *found;
}

const PickleGlobal& PickleRef::global() const {
  if (slot_.kind == PickleKind::kGlobal) return document_->allowed_[slot_.payload];
  if (slot_.kind != PickleKind::kObject) expected("a global or an object");
  return document_->allowed_[document_->objects_[slot_.payload].global.payload];
}

bool PickleRef::is_object_of(const PickleGlobal& type) const {
  return slot_.kind == PickleKind::kObject && global() == type;
}

PickleRef PickleRef::arguments() const {
  if (slot_.kind != PickleKind::kObject) expected("an object");
  return {document_, document_->objects_[slot_.payload].arguments};
}

std::optional<PickleRef> PickleRef::state() const {
  if (slot_.kind != PickleKind::kObject) expected("an object");
  const auto& object = document_->objects_[slot_.payload];
  if (!object.has_state) return std::nullopt;
  return PickleRef(document_, object.state);
}

PickleRef PickleRef::persistent_id() const {
  if (slot_.kind != PickleKind::kPersistentId) expected("a persistent id");
  return {document_, document_->pool_[slot_.payload]};
}

}  // namespace lerobot::formats
