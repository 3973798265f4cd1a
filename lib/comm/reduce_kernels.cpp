#include "comm/reduce_kernels.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "lerobot/comm/tree.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::comm {
namespace {

// Elements of one pass: the partial results of all tree levels stay in the first-level cache.
constexpr std::size_t kBlock = 1024;

// bf16 by its bits: c10's conversion tests for NaN with a branch, which keeps the loop from being vectorised.
struct Bf16 {
  std::uint16_t bits;
};

float widen(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

template <typename T>
T narrow(float x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return Bf16{static_cast<std::uint16_t>(is_nan ? 0x7fc0U : rounded)};
  } else {
    return static_cast<T>(x);
  }
}

template <typename T>
inline constexpr bool kIsShortFloat = std::is_same_v<T, Bf16> || std::is_same_v<T, c10::Half>;
template <typename T>
inline constexpr bool kIsFloat = kIsShortFloat<T> || std::is_floating_point_v<T>;

// The type in which one addition of two T is made, before it is rounded back to T.
template <typename T>
auto compute(T x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return widen(x);
  } else if constexpr (kIsShortFloat<T>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}
template <typename T>
using Compute = decltype(compute(T{}));

template <typename T>
T store(Compute<T> x) {
  if constexpr (kIsShortFloat<T>) {
    return narrow<T>(x);
  } else {
    return x;
  }
}

template <Reduction kOp, typename C>
C combine(C a, C b) {
  if constexpr (kOp == Reduction::kSum) {
    return static_cast<C>(a + b);
  } else if constexpr (kOp == Reduction::kProduct) {
    return static_cast<C>(a * b);
  } else if constexpr (kOp == Reduction::kMin) {
    return (a < b || a != a) ? a : b;
  } else if constexpr (kOp == Reduction::kMax) {
    return (a > b || a != a) ? a : b;
  } else if constexpr (kOp == Reduction::kBitAnd) {
    return static_cast<C>(a & b);
  } else if constexpr (kOp == Reduction::kBitOr) {
    return static_cast<C>(a | b);
  } else {
    return static_cast<C>(a ^ b);
  }
}

template <typename T, Reduction kOp>
void combine_blocks(const T* a, const T* b, T* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = store<T>(combine<kOp>(compute(a[i]), compute(b[i])));
}

template <typename T>
void scale_block(const T* in, T* out, double factor, std::size_t n) {
  const auto f = static_cast<Compute<T>>(factor);
  for (std::size_t i = 0; i < n; ++i) out[i] = store<T>(static_cast<Compute<T>>(compute(in[i]) * f));
}

template <typename T>
void divide_block(T* inout, int divisor, std::size_t n) {
  const auto d = static_cast<Compute<T>>(divisor);
  for (std::size_t i = 0; i < n; ++i) inout[i] = store<T>(static_cast<Compute<T>>(compute(inout[i]) / d));
}

template <typename T, Reduction kOp>
class TreeReducer {
 public:
  TreeReducer(const ReduceSpec& spec, std::span<const std::byte* const> inputs) : spec_(spec), inputs_(inputs) {
    std::size_t levels = 1;
    while ((std::size_t{1} << levels) < inputs.size()) ++levels;
    scratch_.resize(spec.factor == 1.0 && inputs.size() <= 2 ? 0 : 2 * (levels + 1) * kBlock);
  }

  void run(std::byte* out, std::size_t numel) {
    T* const result = reinterpret_cast<T*>(out);
    for (std::size_t begin = 0; begin < numel; begin += kBlock) {
      const std::size_t n = std::min(kBlock, numel - begin);
      reduce(0, inputs_.size(), begin, n, result + begin, 0);
      if constexpr (kIsFloat<T>) {
        if (spec_.divisor != 1) divide_block(result + begin, spec_.divisor, n);
      }
    }
  }

 private:
  T* slot(std::size_t level, std::size_t side) { return scratch_.data() + (2 * level + side) * kBlock; }

  // The subtree over ranks [first, last), written to `into`.
  void reduce(std::size_t first, std::size_t last, std::size_t begin, std::size_t n, T* into, std::size_t level) {
    if (last - first == 1) {
      const T* in = input(first, begin);
      if (spec_.factor != 1.0) {
        scale_block(in, into, spec_.factor, n);
      } else if (in != into) {
        std::copy_n(in, n, into);
      }
      return;
    }
    const std::size_t middle = first + tree_left(last - first);
    const T* left = operand(first, middle, begin, n, level, 0);
    const T* right = operand(middle, last, begin, n, level, 1);
    combine_blocks<T, kOp>(left, right, into, n);
  }

  // A plain leaf is read where it lies; anything else is computed into this level's scratch. `out` may alias a leaf
  // because it is written only by the root, after every leaf of the block was read.
  const T* operand(std::size_t first, std::size_t last, std::size_t begin, std::size_t n, std::size_t level,
                   std::size_t side) {
    if (last - first == 1 && spec_.factor == 1.0) return input(first, begin);
    T* const into = slot(level, side);
    reduce(first, last, begin, n, into, level + 1);
    return into;
  }

  const T* input(std::size_t rank, std::size_t begin) const {
    return reinterpret_cast<const T*>(inputs_[rank]) + begin;
  }

  const ReduceSpec& spec_;
  std::span<const std::byte* const> inputs_;
  std::vector<T> scratch_;
};

[[noreturn]] void no_kernel(c10::ScalarType dtype, const char* what) {
  fail(ErrorKind::kComm,
       "reduce: {} has no kernel for dtype {}. Reduce float32, float64, float16, bfloat16, integers or bool.", what,
       c10::toString(dtype));
}

template <typename T>
void dispatch(c10::ScalarType dtype, const ReduceSpec& spec, std::span<const std::byte* const> inputs, std::byte* out,
              std::size_t numel) {
  if (!kIsFloat<T> && (spec.divisor != 1 || spec.factor != 1.0)) no_kernel(dtype, "an average or a scaled sum");
  switch (spec.reduction) {
    case Reduction::kSum:
      return TreeReducer<T, Reduction::kSum>(spec, inputs).run(out, numel);
    case Reduction::kProduct:
      return TreeReducer<T, Reduction::kProduct>(spec, inputs).run(out, numel);
    case Reduction::kMin:
      return TreeReducer<T, Reduction::kMin>(spec, inputs).run(out, numel);
    case Reduction::kMax:
      return TreeReducer<T, Reduction::kMax>(spec, inputs).run(out, numel);
    default:
      break;
  }
  if constexpr (kIsFloat<T>) {
    no_kernel(dtype, "a bitwise reduction");
  } else {
    switch (spec.reduction) {
      case Reduction::kBitAnd:
        return TreeReducer<T, Reduction::kBitAnd>(spec, inputs).run(out, numel);
      case Reduction::kBitOr:
        return TreeReducer<T, Reduction::kBitOr>(spec, inputs).run(out, numel);
      default:
        return TreeReducer<T, Reduction::kBitXor>(spec, inputs).run(out, numel);
    }
  }
}

// A sum of flags must stay a flag.
ReduceSpec for_bool(ReduceSpec spec) {
  if (spec.reduction == Reduction::kSum) spec.reduction = Reduction::kBitOr;
  if (spec.reduction == Reduction::kProduct) spec.reduction = Reduction::kBitAnd;
  return spec;
}

}  // namespace

void reduce_in_tree_order(c10::ScalarType dtype, const ReduceSpec& spec, std::span<const std::byte* const> inputs,
                          std::byte* out, std::size_t numel) {
  switch (dtype) {
    case c10::ScalarType::Float:
      return dispatch<float>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Double:
      return dispatch<double>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::BFloat16:
      return dispatch<Bf16>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Half:
      return dispatch<c10::Half>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Byte:
      return dispatch<std::uint8_t>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Char:
      return dispatch<std::int8_t>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Short:
      return dispatch<std::int16_t>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Int:
      return dispatch<std::int32_t>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Long:
      return dispatch<std::int64_t>(dtype, spec, inputs, out, numel);
    case c10::ScalarType::Bool:
      return dispatch<std::uint8_t>(dtype, for_bool(spec), inputs, out, numel);
    default:
      no_kernel(dtype, "this reduction");
  }
}

}  // namespace lerobot::comm
