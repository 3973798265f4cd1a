#include "non_finite.hpp"

#include "lerobot/core/error.hpp"

namespace lerobot::train {

bool may_update(const optim::GradNorm& norm, config::OnNonfinite policy, std::int64_t step, std::int64_t& num_skipped,
                log::Logger& logger) {
  if (norm.finite) return true;
  if (policy == config::OnNonfinite::kStop)
    fail(ErrorKind::kConfig,
         "step {}: the gradient of \"{}\" is not finite (norm {}). Nothing was updated since; look at the data and the "
         "learning rate, or pass --on_nonfinite=skip to leave such updates out.",
         step, norm.first_bad, norm.norm);
  ++num_skipped;
  logger.warning("step {}: update skipped, the gradient of \"{}\" is not finite ({} skipped so far)", step,
                 norm.first_bad, num_skipped);
  return false;
}

}  // namespace lerobot::train
