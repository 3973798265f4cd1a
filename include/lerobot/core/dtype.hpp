#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lerobot {

/// Element types of the files we read and write. Torch-free, so that readers can be fuzzed without it.
enum class DType : std::uint8_t {
  kBool, kU8, kI8, kF8E5M2, kF8E4M3, kI16, kU16, kF16, kBF16, kI32, kU32, kF32, kC64, kF64, kI64, kU64,
};

struct DTypeInfo {
  DType dtype;
  std::string_view safetensors;  ///< "F32"
  std::string_view torch;        ///< "float32", the attribute of Python's torch module
  std::size_t itemsize;          ///< bytes
};

inline constexpr std::array kDTypes{
    DTypeInfo{DType::kBool, "BOOL", "bool", 1},         DTypeInfo{DType::kU8, "U8", "uint8", 1},
    DTypeInfo{DType::kI8, "I8", "int8", 1},             DTypeInfo{DType::kF8E5M2, "F8_E5M2", "float8_e5m2", 1},
    DTypeInfo{DType::kF8E4M3, "F8_E4M3", "float8_e4m3fn", 1}, DTypeInfo{DType::kI16, "I16", "int16", 2},
    DTypeInfo{DType::kU16, "U16", "uint16", 2},         DTypeInfo{DType::kF16, "F16", "float16", 2},
    DTypeInfo{DType::kBF16, "BF16", "bfloat16", 2},     DTypeInfo{DType::kI32, "I32", "int32", 4},
    DTypeInfo{DType::kU32, "U32", "uint32", 4},         DTypeInfo{DType::kF32, "F32", "float32", 4},
    DTypeInfo{DType::kC64, "C64", "complex64", 8},      DTypeInfo{DType::kF64, "F64", "float64", 8},
    DTypeInfo{DType::kI64, "I64", "int64", 8},          DTypeInfo{DType::kU64, "U64", "uint64", 8},
};

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
constexpr std::size_t itemsize(DType dtype) { return info(dtype).itemsize; }

constexpr std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const auto& entry : kDTypes)
    if (entry.safetensors == name) return entry.dtype;
  return std::nullopt;
}

constexpr std::optional<DType> dtype_from_torch(std::string_view name) {
  for (const auto& entry : kDTypes)
    if (entry.torch == name) return entry.dtype;
  return std::nullopt;
}

static_assert(info(DType::kF32).safetensors == "F32" && info(DType::kU64).itemsize == 8);

}  // namespace lerobot
