#include "data/arrow_values.hpp"

#include <arrow/api.h>

#include <type_traits>

#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

using arrow::Type;

template <typename ArrowArray, typename T>
void convert(const arrow::Array& array, T* out) {
  const auto& typed = static_cast<const ArrowArray&>(array);
  for (std::int64_t i = 0; i < typed.length(); ++i) {
    if constexpr (std::is_same_v<T, bool>)
      out[i] = typed.Value(i) != 0;
    else
      out[i] = static_cast<T>(typed.Value(i));
  }
}

/// IEEE half to float: parquet's float16 arrives as raw bits.
float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = (bits >> 10) & 0x1FU, fraction = bits & 0x3FFU;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t word = sign | (exponent == 31 ? 0x7F800000U : (exponent + 112U) << 23) | fraction << 13;
  float value = 0;
  static_assert(sizeof(value) == sizeof(word));
  __builtin_memcpy(&value, &word, sizeof(value));
  return value;
}

template <typename T>
void convert_leaf(const arrow::Array& array, T* out, const std::string& where) {
  if (array.null_count() != 0)
    fail(ErrorKind::kDataset, "{} holds {} nulls; expected a number in every row.", where, array.null_count());
  switch (array.type_id()) {
    case Type::BOOL:
      return convert<arrow::BooleanArray>(array, out);
    case Type::INT8:
      return convert<arrow::Int8Array>(array, out);
    case Type::INT16:
      return convert<arrow::Int16Array>(array, out);
    case Type::INT32:
      return convert<arrow::Int32Array>(array, out);
    case Type::INT64:
      return convert<arrow::Int64Array>(array, out);
    case Type::UINT8:
      return convert<arrow::UInt8Array>(array, out);
    case Type::UINT16:
      return convert<arrow::UInt16Array>(array, out);
    case Type::UINT32:
      return convert<arrow::UInt32Array>(array, out);
    case Type::UINT64:
      return convert<arrow::UInt64Array>(array, out);
    case Type::FLOAT:
      return convert<arrow::FloatArray>(array, out);
    case Type::DOUBLE:
      return convert<arrow::DoubleArray>(array, out);
    case Type::HALF_FLOAT: {
      const auto& halves = static_cast<const arrow::HalfFloatArray&>(array);
      for (std::int64_t i = 0; i < halves.length(); ++i) out[i] = static_cast<T>(half_to_float(halves.Value(i)));
      return;
    }
    default:
      fail(ErrorKind::kDataset, "{} is of type {}; expected numbers.", where, array.type()->ToString());
  }
}

template <typename ListArray>
std::shared_ptr<arrow::Array> items_of(const ListArray& lists, std::int64_t size, const std::string& where) {
  if (lists.null_count() != 0) fail(ErrorKind::kDataset, "{} holds {} null rows.", where, lists.null_count());
  for (std::int64_t i = 0; i < lists.length(); ++i)
    if (lists.value_length(i) != size)
      fail(ErrorKind::kDataset, "{}: row {} has {} items; meta/info.json says {}.", where, i,
           static_cast<std::int64_t>(lists.value_length(i)), size);
  return lists.values()->Slice(lists.length() == 0 ? 0 : lists.value_offset(0), lists.length() * size);
}

template <typename T>
void copy_array(const arrow::Array& array, std::span<const std::int64_t> shape, T* out, const std::string& where) {
  const bool list =
      array.type_id() == Type::LIST || array.type_id() == Type::LARGE_LIST || array.type_id() == Type::FIXED_SIZE_LIST;
  if (!list) {
    for (const std::int64_t size : shape)  // [1] is stored as a plain column
      if (size != 1)
        fail(ErrorKind::kDataset, "{} is of type {}; expected lists of {}.", where, array.type()->ToString(), size);
    return convert_leaf(array, out, where);
  }
  const std::int64_t size = shape.empty() ? 1 : shape.front();
  std::shared_ptr<arrow::Array> items;
  if (array.type_id() == Type::LIST)
    items = items_of(static_cast<const arrow::ListArray&>(array), size, where);
  else if (array.type_id() == Type::LARGE_LIST)
    items = items_of(static_cast<const arrow::LargeListArray&>(array), size, where);
  else
    items = items_of(static_cast<const arrow::FixedSizeListArray&>(array), size, where);
  copy_array(*items, shape.empty() ? shape : shape.subspan(1), out, where);
}

template <typename BinaryArray>
void append_binary(const BinaryArray& binary, const arrow::StructArray& rows, std::vector<std::uint8_t>& bytes,
                   std::vector<std::int64_t>& offsets, const std::string& where) {
  for (std::int64_t i = 0; i < binary.length(); ++i) {
    if (rows.IsNull(i) || binary.IsNull(i))
      fail(ErrorKind::kDataset,
           "{}: a row has no picture bytes (a path alone is not read). Embed the pictures in the dataset.", where);
    const auto view = binary.GetView(i);
    bytes.insert(bytes.end(), view.begin(), view.end());
    offsets.push_back(static_cast<std::int64_t>(bytes.size()));
  }
}

}  // namespace

template <typename T>
void copy_values(const arrow::ChunkedArray& column, std::span<const std::int64_t> shape, T* out,
                 const std::string& where) {
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) numel *= size;
  for (const auto& chunk : column.chunks()) {
    copy_array(*chunk, shape, out, where);
    out += chunk->length() * numel;
  }
}

template void copy_values(const arrow::ChunkedArray&, std::span<const std::int64_t>, float*, const std::string&);
template void copy_values(const arrow::ChunkedArray&, std::span<const std::int64_t>, double*, const std::string&);
template void copy_values(const arrow::ChunkedArray&, std::span<const std::int64_t>, std::int64_t*, const std::string&);
template void copy_values(const arrow::ChunkedArray&, std::span<const std::int64_t>, bool*, const std::string&);

std::vector<std::optional<std::string>> read_strings(const arrow::ChunkedArray& column, const std::string& where) {
  std::vector<std::optional<std::string>> out;
  const auto append = [&](const auto& array) {
    for (std::int64_t i = 0; i < array.length(); ++i) {
      if (array.IsNull(i))
        out.emplace_back();
      else
        out.emplace_back(std::string(array.GetView(i)));
    }
  };
  for (const auto& chunk : column.chunks()) {
    if (chunk->type_id() == Type::STRING)
      append(static_cast<const arrow::StringArray&>(*chunk));
    else if (chunk->type_id() == Type::LARGE_STRING)
      append(static_cast<const arrow::LargeStringArray&>(*chunk));
    else
      fail(ErrorKind::kDataset, "{} is of type {}; expected text.", where, chunk->type()->ToString());
  }
  return out;
}

void append_images(const arrow::ChunkedArray& column, std::vector<std::uint8_t>& bytes,
                   std::vector<std::int64_t>& offsets, const std::string& where) {
  for (const auto& chunk : column.chunks()) {
    const auto* rows = chunk->type_id() == Type::STRUCT ? static_cast<const arrow::StructArray*>(chunk.get()) : nullptr;
    const std::shared_ptr<arrow::Array> field = rows != nullptr ? rows->GetFieldByName("bytes") : nullptr;
    if (field && field->type_id() == Type::BINARY)
      append_binary(static_cast<const arrow::BinaryArray&>(*field), *rows, bytes, offsets, where);
    else if (field && field->type_id() == Type::LARGE_BINARY)
      append_binary(static_cast<const arrow::LargeBinaryArray&>(*field), *rows, bytes, offsets, where);
    else
      fail(ErrorKind::kDataset, "{} is of type {}; expected struct{{bytes, path}}.", where, chunk->type()->ToString());
  }
}

}  // namespace lerobot::data
