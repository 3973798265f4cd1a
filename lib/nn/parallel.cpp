#include "nn/parallel.hpp"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/from_blob.h>

namespace lerobot::nn {

void parallel_for(std::int64_t n, std::int64_t grain, c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  if (n <= 0) return;
  if (n <= grain || at::get_num_threads() == 1 || at::in_parallel_region()) {
    body(0, n);
    return;
  }
  // One "element" per index: a part's address tells which indices it holds. The memory itself is never touched.
  static char base;
  const at::Tensor indices = at::from_blob(&base, {n}, at::kByte);
  auto loops = at::TensorIteratorConfig()
                   .check_all_same_dtype(false)
                   .set_check_mem_overlap(false)
                   .resize_outputs(false)
                   .declare_static_shape({n})
                   .add_output(indices)
                   .build();
  loops.for_each(
      [&](char** data, const std::int64_t*, std::int64_t count) {
        const std::int64_t begin = data[0] - &base;
        body(begin, begin + count);
      },
      grain);
}

}  // namespace lerobot::nn
