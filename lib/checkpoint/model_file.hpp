#pragma once

#include <exception>
#include <filesystem>

#include "lerobot/checkpoint/manager.hpp"
#include "lerobot/formats/safetensors.hpp"

namespace lerobot::checkpoint {

/// Keeps the first failure of a series of steps, so that collectives between them still take place on every rank.
class FirstFailure {
 public:
  template <typename Step>
  void run(Step&& step) {
    if (failure_) return;
    try {
      step();
    } catch (const std::exception&) {
      failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

/// Writes one safetensors file with whole tensors, gathering the rows of sharded ones tensor by tensor.
///
/// Tensors that share storage are stored once, under the name that sorts first; the others become metadata.
///
/// Collective: over the shard group of replica 0; nothing happens on other replicas. Failures are kept in `failure`.
void write_gathered_file(const std::filesystem::path& path, const mesh::StateDict& state, const Ranks& ranks,
                         bool is_main, FirstFailure& failure, formats::SafetensorsMetadata metadata = {});

/// Whether every floating-point element of this rank's tensors is finite.
[[nodiscard]] bool all_finite(const mesh::StateDict& model);

}  // namespace lerobot::checkpoint
