#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "lerobot/core/dtype.hpp"

namespace lerobot {

/// The torch element type of `dtype`. Header-only, so that `core` itself does not link torch.
constexpr c10::ScalarType torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return c10::ScalarType::Bool;
    case DType::kU8:
      return c10::ScalarType::Byte;
    case DType::kI8:
      return c10::ScalarType::Char;
    case DType::kF8E5M2:
      return c10::ScalarType::Float8_e5m2;
    case DType::kF8E4M3:
      return c10::ScalarType::Float8_e4m3fn;
    case DType::kI16:
      return c10::ScalarType::Short;
    case DType::kU16:
      return c10::ScalarType::UInt16;
    case DType::kF16:
      return c10::ScalarType::Half;
    case DType::kBF16:
      return c10::ScalarType::BFloat16;
    case DType::kI32:
      return c10::ScalarType::Int;
    case DType::kU32:
      return c10::ScalarType::UInt32;
    case DType::kF32:
      return c10::ScalarType::Float;
    case DType::kC64:
      return c10::ScalarType::ComplexFloat;
    case DType::kF64:
      return c10::ScalarType::Double;
    case DType::kI64:
      return c10::ScalarType::Long;
    case DType::kU64:
      return c10::ScalarType::UInt64;
  }
  return c10::ScalarType::Undefined;
}

/// The file element type of a torch tensor; nothing for types that no file of ours holds.
constexpr std::optional<DType> dtype_from_torch(c10::ScalarType type) {
  for (const DTypeInfo& entry : kDTypes)
    if (torch_dtype(entry.dtype) == type) return entry.dtype;
  return std::nullopt;
}

static_assert(dtype_from_torch(c10::ScalarType::BFloat16) == DType::kBF16);
static_assert(!dtype_from_torch(c10::ScalarType::QInt8));

}  // namespace lerobot
