#include "lerobot/policies/temporal_ensembler.hpp"

namespace lerobot::policies {

TemporalEnsembler::TemporalEnsembler(double coefficient, std::int64_t chunk_size)
    : weights_C_(at::exp(at::arange(chunk_size, at::kFloat) * -coefficient)),
      weight_sums_C_(at::cumsum(weights_C_, 0)) {}

void TemporalEnsembler::reset() {
  average_BSA_.reset();
  counts_S1_.reset();
}

at::Tensor TemporalEnsembler::update(const at::Tensor& chunk_BCA) {
  const std::int64_t chunk_size = weights_C_.size(0);
  if (weights_C_.device() != chunk_BCA.device()) {
    weights_C_ = weights_C_.to(chunk_BCA.device());
    weight_sums_C_ = weight_sums_C_.to(chunk_BCA.device());
  }
  const auto counts = at::TensorOptions(at::kLong).device(chunk_BCA.device());
  if (!average_BSA_.defined()) {
    average_BSA_ = chunk_BCA.clone();
    counts_S1_ = at::ones({chunk_size, 1}, counts);
  } else {
    const std::int64_t kept = chunk_size - 1;
    average_BSA_ = average_BSA_ * weight_sums_C_.index({counts_S1_ - 1}) +
                   chunk_BCA.narrow(1, 0, kept) * weights_C_.index({counts_S1_});
    average_BSA_ = average_BSA_ / weight_sums_C_.index({counts_S1_});
    counts_S1_ = at::clamp(counts_S1_ + 1, std::nullopt, chunk_size);
    average_BSA_ = at::cat({average_BSA_, chunk_BCA.narrow(1, kept, 1)}, 1);
    counts_S1_ = at::cat({counts_S1_, at::ones({1, 1}, counts)}, 0);
  }
  const at::Tensor action_BA = average_BSA_.select(1, 0);
  average_BSA_ = average_BSA_.narrow(1, 1, chunk_size - 1);
  counts_S1_ = counts_S1_.narrow(0, 1, chunk_size - 1);
  return action_BA;
}

}  // namespace lerobot::policies
