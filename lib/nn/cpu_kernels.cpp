#include "nn/cpu_kernels.hpp"

#include <bit>

namespace lerobot::nn::cpu {
namespace {

// GCC and Clang inline an always_inline body into a caller with a richer instruction set, and so compile the body once
// per set. Without x86 there is one set.
template <auto kBody, typename... A>
void run_plain(A... arguments) {
  kBody(arguments...);
}
#if defined(__x86_64__)
template <auto kBody, typename... A>
[[gnu::target("avx2,fma")]] void run_avx2(A... arguments) {
  kBody(arguments...);
}
template <auto kBody, typename... A>
[[gnu::target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]] void run_avx512(A... arguments) {
  kBody(arguments...);
}
template <auto kBody, typename... A>
void run(A... arguments) {
  static const int isa = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") ? 2
                         : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")        ? 1
                                                                                                  : 0;
  if (isa == 2) return run_avx512<kBody>(arguments...);
  if (isa == 1) return run_avx2<kBody>(arguments...);
  run_plain<kBody>(arguments...);
}
#else
template <auto kBody, typename... A>
void run(A... arguments) {
  run_plain<kBody>(arguments...);
}
#endif

[[gnu::always_inline]] inline float load(const float* p) { return *p; }
[[gnu::always_inline]] inline float load(const Bf16* p) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(*p) << 16U);
}
[[gnu::always_inline]] inline void store(float* p, float value) { *p = value; }
[[gnu::always_inline]] inline void store(Bf16* p, float value) {  // to nearest, ties to even; NaN stays NaN
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  *p = static_cast<Bf16>(value == value ? rounded : 0x7FC0U);
}

/// Two 32-bit keys for a run of 2^32 positions: splitmix64's finaliser over the key and the run's number.
struct RunKey {
  std::uint32_t add, mix;
};
[[gnu::always_inline]] inline RunKey run_key(std::uint64_t key, std::uint64_t run_number) {
  std::uint64_t z = key + (run_number + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  z ^= z >> 31U;
  return {static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(z >> 32U)};
}

/// 32 random bits for a position: a two-round multiply-xorshift hash, keyed before each round.
[[gnu::always_inline]] inline std::uint32_t random_bits(RunKey key, std::uint32_t position) {
  std::uint32_t x = position + key.add;
  x = (x ^ (x >> 16U)) * 0x7FEB352DU;
  x += key.mix;
  x = (x ^ (x >> 15U)) * 0x846CA68BU;
  return x ^ (x >> 16U);
}

[[gnu::always_inline]] inline float mask_at(const DropoutMask& mask, RunKey key, std::uint32_t position) {
  return random_bits(key, position) >= mask.threshold ? mask.scale : 0.0F;
}

/// Calls body(offset, count, key, first position) for every stretch of [begin, begin + n) with one RunKey.
template <typename Body>
[[gnu::always_inline]] inline void for_runs(std::uint64_t key, std::int64_t begin, std::int64_t n, const Body& body) {
  constexpr std::int64_t kRun = std::int64_t{1} << 32U;
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t position = begin + done;
    const std::int64_t left = kRun - (position & (kRun - 1));
    const std::int64_t count = left < n - done ? left : n - done;
    body(done, count, run_key(key, static_cast<std::uint64_t>(position) >> 32U), static_cast<std::uint32_t>(position));
    done += count;
  }
}

template <typename T>
[[gnu::always_inline]] inline void dropout_body(const DropoutMask* mask, std::int64_t begin, std::int64_t n,
                                                const T* __restrict in, T* __restrict out) {
  for_runs(mask->key, begin, n, [&](std::int64_t at, std::int64_t count, RunKey key, std::uint32_t first) {
    const DropoutMask m = *mask;
    for (std::int64_t i = 0; i < count; ++i)
      store(out + at + i, load(in + at + i) * mask_at(m, key, first + static_cast<std::uint32_t>(i)));
  });
}

template <typename T>
[[gnu::always_inline]] inline void add_dropout_body(const DropoutMask* mask, std::int64_t begin, std::int64_t n,
                                                    const T* __restrict residual, const T* __restrict in,
                                                    T* __restrict out) {
  for_runs(mask->key, begin, n, [&](std::int64_t at, std::int64_t count, RunKey key, std::uint32_t first) {
    const DropoutMask m = *mask;
    for (std::int64_t i = 0; i < count; ++i)
      store(out + at + i,
            load(residual + at + i) + load(in + at + i) * mask_at(m, key, first + static_cast<std::uint32_t>(i)));
  });
}

template <typename T>
[[gnu::always_inline]] inline void relu_dropout_body(const DropoutMask* mask, std::int64_t begin, std::int64_t n,
                                                     T* data) {
  for_runs(mask->key, begin, n, [&](std::int64_t at, std::int64_t count, RunKey key, std::uint32_t first) {
    const DropoutMask m = *mask;
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = load(data + at + i);
      const float kept = x < 0.0F ? 0.0F : x;  // NaN stays NaN
      store(data + at + i, kept * mask_at(m, key, first + static_cast<std::uint32_t>(i)));
    }
  });
}

template <typename T>
[[gnu::always_inline]] inline void relu_dropout_backward_body(float scale, std::int64_t n, const T* __restrict out,
                                                              T* __restrict grad) {
  for (std::int64_t i = 0; i < n; ++i) store(grad + i, load(out + i) > 0.0F ? load(grad + i) * scale : 0.0F);
}

[[gnu::always_inline]] inline void column_sums_body(std::int64_t num_rows, std::int64_t num_columns,
                                                    std::int64_t row_stride, const float* __restrict data,
                                                    float* __restrict out) {
  constexpr std::int64_t kBlockRows = 64, kBlockColumns = 512;
  alignas(64) float block[kBlockColumns];
  for (std::int64_t first = 0; first < num_columns; first += kBlockColumns) {
    const std::int64_t width = num_columns - first < kBlockColumns ? num_columns - first : kBlockColumns;
    for (std::int64_t j = 0; j < width; ++j) out[first + j] = 0.0F;
    for (std::int64_t begin = 0; begin < num_rows; begin += kBlockRows) {
      const std::int64_t end = num_rows - begin < kBlockRows ? num_rows : begin + kBlockRows;
      for (std::int64_t j = 0; j < width; ++j) block[j] = 0.0F;
      for (std::int64_t i = begin; i < end; ++i) {
        const float* row = data + i * row_stride + first;
        for (std::int64_t j = 0; j < width; ++j) block[j] += row[j];
      }
      for (std::int64_t j = 0; j < width; ++j) out[first + j] += block[j];
    }
  }
}

/// e^x for x <= 0, relative error below 2e-7; 0 far below. Written without branches or calls, so that loops vectorise.
[[gnu::always_inline]] inline float exp_of_nonpositive(float x) {
  x = x < -87.0F ? -87.0F : x;
  const float n = static_cast<float>(static_cast<std::int32_t>(x * 1.44269504F - 0.5F));  // round to nearest
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const float power = std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
  return p * power;
}

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t padded(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

/// rows [count, head_dim] -> columns [head_dim, padded(count)], zeros behind the end.
[[gnu::always_inline]] inline void transpose(Rows rows, std::int64_t count, std::int64_t head_dim, float* columns) {
  const std::int64_t width = padded(count);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    float* column = columns + d * width;
    for (std::int64_t i = 0; i < count; ++i) column[i] = rows.data[i * rows.row_stride + d];
    for (std::int64_t i = count; i < width; ++i) column[i] = 0.0F;
  }
}

/// y += factor * x
[[gnu::always_inline]] inline void add_scaled(std::int64_t n, float factor, const float* __restrict x,
                                              float* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// out[i] = sum over d of row[d] * columns[d][i]
[[gnu::always_inline]] inline void dot_columns(const float* row, const float* columns, std::int64_t head_dim,
                                               std::int64_t width, float* out) {
  for (std::int64_t i = 0; i < width; ++i) out[i] = 0.0F;
  for (std::int64_t d = 0; d < head_dim; ++d) add_scaled(width, row[d], columns + d * width, out);
}

[[gnu::always_inline]] inline void short_attention_body(const AttentionHead* head, Rows q, Rows k, Rows v,
                                                        float* weights, Rows out) {
  const std::int64_t keys = head->num_keys, width = padded(keys), head_dim = head->head_dim;
  alignas(64) float k_columns[kMaxShortHeadDim * kMaxShortKeys];
  alignas(64) float row[kMaxShortKeys];
  alignas(64) float masked[kMaxShortKeys];
  transpose(k, keys, head_dim, k_columns);
  const float lowest = -1e30F;
  for (std::int64_t i = 0; i < width; ++i)
    masked[i] = i >= keys || (head->key_is_masked && head->key_is_masked[i]) ? lowest : 0.0F;
  const RunKey key = run_key(head->mask.key, 0);  // positions of short sequences stay far below 2^32
  const DropoutMask mask = head->mask;
  for (std::int64_t i = 0; i < head->num_queries; ++i) {
    dot_columns(q.data + i * q.row_stride, k_columns, head_dim, width, row);
    float highest = lowest;
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] = row[j] * head->scale + masked[j];
      highest = row[j] > highest ? row[j] : highest;
    }
    float sum = 0.0F;
    for (std::int64_t j = 0; j < width; ++j) row[j] = masked[j] == 0.0F ? exp_of_nonpositive(row[j] - highest) : 0.0F;
    for (std::int64_t j = 0; j < keys; ++j) sum += row[j];
    const float inverse = 1.0F / sum;
    float* weight = weights + i * keys;
    for (std::int64_t j = 0; j < keys; ++j) weight[j] = row[j] * inverse;
    const auto first = static_cast<std::uint32_t>(head->mask_begin + i * keys);
    float* result = out.data + i * out.row_stride;
    for (std::int64_t d = 0; d < head_dim; ++d) result[d] = 0.0F;
    for (std::int64_t j = 0; j < keys; ++j) {
      const float factor = weight[j] * mask_at(mask, key, first + static_cast<std::uint32_t>(j));
      add_scaled(head_dim, factor, v.data + j * v.row_stride, result);
    }
  }
}

[[gnu::always_inline]] inline void short_attention_backward_body(const AttentionHead* head, Rows q, Rows k, Rows v,
                                                                 const float* weights, Rows grad_out, Rows grad_q,
                                                                 Rows grad_k, Rows grad_v) {
  const std::int64_t keys = head->num_keys, width = padded(keys), head_dim = head->head_dim;
  alignas(64) float v_columns[kMaxShortHeadDim * kMaxShortKeys];
  alignas(64) float grad_weight[kMaxShortKeys];
  transpose(v, keys, head_dim, v_columns);
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t d = 0; d < head_dim; ++d) grad_k.data[j * grad_k.row_stride + d] = 0.0F;
    for (std::int64_t d = 0; d < head_dim; ++d) grad_v.data[j * grad_v.row_stride + d] = 0.0F;
  }
  const RunKey key = run_key(head->mask.key, 0);
  const DropoutMask mask = head->mask;
  for (std::int64_t i = 0; i < head->num_queries; ++i) {
    const float* grad = grad_out.data + i * grad_out.row_stride;
    const float* weight = weights + i * keys;
    const auto first = static_cast<std::uint32_t>(head->mask_begin + i * keys);
    dot_columns(grad, v_columns, head_dim, width, grad_weight);
    float dot = 0.0F;  // of the weights with their gradients: softmax's backward
    for (std::int64_t j = 0; j < keys; ++j) {
      const float kept = mask_at(mask, key, first + static_cast<std::uint32_t>(j));
      grad_weight[j] *= kept;
      dot += grad_weight[j] * weight[j];
      const float factor = weight[j] * kept;
      add_scaled(head_dim, factor, grad, grad_v.data + j * grad_v.row_stride);
    }
    const float* query = q.data + i * q.row_stride;
    float* gq = grad_q.data + i * grad_q.row_stride;
    for (std::int64_t d = 0; d < head_dim; ++d) gq[d] = 0.0F;
    for (std::int64_t j = 0; j < keys; ++j) {
      const float factor = weight[j] * (grad_weight[j] - dot) * head->scale;
      add_scaled(head_dim, factor, k.data + j * k.row_stride, gq);
      add_scaled(head_dim, factor, query, grad_k.data + j * grad_k.row_stride);
    }
  }
}

}  // namespace

template <typename T>
void dropout(const DropoutMask& mask, std::int64_t begin, std::int64_t n, const T* in, T* out) {
  run<dropout_body<T>>(&mask, begin, n, in, out);
}
template <typename T>
void add_dropout(const DropoutMask& mask, std::int64_t begin, std::int64_t n, const T* residual, const T* in, T* out) {
  run<add_dropout_body<T>>(&mask, begin, n, residual, in, out);
}
template <typename T>
void relu_dropout(const DropoutMask& mask, std::int64_t begin, std::int64_t n, T* data) {
  run<relu_dropout_body<T>>(&mask, begin, n, data);
}
template <typename T>
void relu_dropout_backward(float scale, std::int64_t n, const T* out, T* grad) {
  run<relu_dropout_backward_body<T>>(scale, n, out, grad);
}
template void dropout<float>(const DropoutMask&, std::int64_t, std::int64_t, const float*, float*);
template void dropout<Bf16>(const DropoutMask&, std::int64_t, std::int64_t, const Bf16*, Bf16*);
template void add_dropout<float>(const DropoutMask&, std::int64_t, std::int64_t, const float*, const float*, float*);
template void add_dropout<Bf16>(const DropoutMask&, std::int64_t, std::int64_t, const Bf16*, const Bf16*, Bf16*);
template void relu_dropout<float>(const DropoutMask&, std::int64_t, std::int64_t, float*);
template void relu_dropout<Bf16>(const DropoutMask&, std::int64_t, std::int64_t, Bf16*);
template void relu_dropout_backward<float>(float, std::int64_t, const float*, float*);
template void relu_dropout_backward<Bf16>(float, std::int64_t, const Bf16*, Bf16*);

void column_sums(std::int64_t num_rows, std::int64_t num_columns, std::int64_t row_stride, const float* data,
                 float* out) {
  run<column_sums_body>(num_rows, num_columns, row_stride, data, out);
}

void short_attention(const AttentionHead& head, Rows q, Rows k, Rows v, float* weights, Rows out) {
  run<short_attention_body>(&head, q, k, v, weights, out);
}
void short_attention_backward(const AttentionHead& head, Rows q, Rows k, Rows v, const float* weights, Rows grad_out,
                              Rows grad_q, Rows grad_k, Rows grad_v) {
  run<short_attention_backward_body>(&head, q, k, v, weights, grad_out, grad_q, grad_k, grad_v);
}

}  // namespace lerobot::nn::cpu
