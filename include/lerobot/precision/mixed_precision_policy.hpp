#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

namespace lerobot::precision {

/// Element types in which a sharded unit computes and communicates. A field left empty means the parameter's own type.
///
/// The sharded parameters, their gradients, the optimizer and every checkpoint stay in the original type.
struct MixedPrecisionPolicy {
  std::optional<at::ScalarType> param_dtype;   ///< gathered parameters, and the unit's floating inputs
  std::optional<at::ScalarType> reduce_dtype;  ///< gradients on their way between ranks
  std::optional<at::ScalarType> output_dtype;  ///< the unit's floating outputs
  bool cast_forward_inputs = true;             ///< cast floating inputs to `param_dtype`
};

}  // namespace lerobot::precision
