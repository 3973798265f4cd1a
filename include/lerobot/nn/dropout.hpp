#pragma once

#include <ATen/core/Tensor.h>

namespace lerobot::nn {

/// `x` with each element set to zero with probability `p` and the others scaled by 1 / (1 - p).
///
/// On CPU the mask is a pure function of a 64-bit key and the position of the element. One key is drawn per call from
/// the default CPU generator, so a run is reproducible, resumes with that generator's state and does not depend on the
/// number of threads; backward computes the mask again instead of keeping it. The masks are not those of at::dropout.
/// On other devices it is at::dropout.
///
/// p <= 0 gives `x` itself, p >= 1 zeros.
[[nodiscard]] at::Tensor dropout(const at::Tensor& x, double p);

/// residual + dropout(x, p), in one pass on CPU. `residual` and `x` have the same shape.
[[nodiscard]] at::Tensor add_dropout(const at::Tensor& residual, const at::Tensor& x, double p);

}  // namespace lerobot::nn
