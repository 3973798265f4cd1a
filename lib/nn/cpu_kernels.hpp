#pragma once

#include <cstdint>

// Loops over raw memory that ATen has no fused form of. Each runs as AVX-512, AVX2 or plain code, chosen once from what
// the processor has. Serial: callers split the work. Arguments don't overlap.
namespace lerobot::nn::cpu {

/// Which elements a dropout call keeps: a pure function of `key` and the position of the element.
struct DropoutMask {
  std::uint64_t key = 0;
  std::uint32_t threshold = 0;  ///< an element is dropped when its 32 random bits are below it
  float scale = 1.0F;           ///< of the kept ones
};

/// Element types of the kernels: float, or bfloat16 as its bits.
using Bf16 = std::uint16_t;

/// out[i] = mask(begin + i) * in[i]
template <typename T>
void dropout(const DropoutMask& mask, std::int64_t begin, std::int64_t n, const T* in, T* out);
/// out[i] = residual[i] + mask(begin + i) * in[i]
template <typename T>
void add_dropout(const DropoutMask& mask, std::int64_t begin, std::int64_t n, const T* residual, const T* in, T* out);
/// data[i] = mask(begin + i) * max(data[i], 0)
template <typename T>
void relu_dropout(const DropoutMask& mask, std::int64_t begin, std::int64_t n, T* data);
/// grad[i] *= out[i] > 0 ? scale : 0, the backward of relu_dropout in place.
template <typename T>
void relu_dropout_backward(float scale, std::int64_t n, const T* out, T* grad);

/// out[j] = sum over i of data[i * row_stride + j], in blocks of rows so that rounding grows with their number's root.
void column_sums(std::int64_t num_rows, std::int64_t num_columns, std::int64_t row_stride, const float* data,
                 float* out);

/// Rows of one head: row i starts at data + i * row_stride.
struct Rows {
  float* data = nullptr;
  std::int64_t row_stride = 0;
};
struct AttentionHead {
  std::int64_t num_queries = 0, num_keys = 0, head_dim = 0;
  float scale = 1.0F;
  const bool* key_is_masked = nullptr;  ///< [num_keys], or none
  DropoutMask mask;
  std::int64_t mask_begin = 0;  ///< position of this head's first weight
};
inline constexpr std::int64_t kMaxShortKeys = 64;
inline constexpr std::int64_t kMaxShortHeadDim = 64;

/// One head of attention for short sequences (limits above): out = dropout(softmax(q k^T scale)) v, and the weights
/// before dropout in `weights` [num_queries, num_keys].
void short_attention(const AttentionHead& head, Rows q, Rows k, Rows v, float* weights, Rows out);
/// Its backward; overwrites grad_q, grad_k, grad_v.
void short_attention_backward(const AttentionHead& head, Rows q, Rows k, Rows v, const float* weights, Rows grad_out,
                              Rows grad_q, Rows grad_k, Rows grad_v);

}  // namespace lerobot::nn::cpu
