#pragma once

#include <cstdint>
#include <memory>

#include "lerobot/comm/process_group.hpp"

namespace torch::nn {
class Module;
}

namespace lerobot::ddp {

struct DdpOptions {
  bool find_unused_parameters = true;    ///< what some ranks do not use gets the average with zeros of theirs
  bool gradient_as_bucket_view = false;  ///< gradients live inside the buckets: one copy less, same results
  bool static_graph = false;             ///< what the first step uses is what every step uses
  std::int64_t bucket_bytes = 25 << 20;
  std::int64_t first_bucket_bytes = 1 << 20;
};

class Replica;

/// A module that every rank holds whole: what `replicate` returns. Movable; its destructor gives the module back.
class [[nodiscard]] Replicated {
 public:
  explicit Replicated(std::shared_ptr<Replica> replica);
  Replicated(Replicated&&) noexcept;
  Replicated& operator=(Replicated&&) noexcept;
  ~Replicated();

 private:
  friend class NoSync;
  std::shared_ptr<Replica> replica_;
};

/// Copies rank 0's parameters and buffers to all ranks, and from then on averages gradients over them during backward.
///
/// The module's forward is called as before: a hook on it prepares the reduction. Gradients are averaged in buckets, in
/// reverse registration order, while backward goes on; with the MPI backend the sum has one order, so results do not
/// depend on the bucket sizes. A module without trainable parameters is only copied.
///
/// Collective: over `group`; so is every forward and backward in training.
/// Throws: Error{kConfig} when the module was not declared with LEROBOT_MODULE; at the next forward, when a parameter
///         had no gradient and `find_unused_parameters` is false (named in the message).
/// Source: PyTorch DistributedDataParallel, on the same c10d::Reducer.
[[nodiscard]] Replicated replicate(std::shared_ptr<torch::nn::Module> module, comm::ProcessGroupPtr group,
                                   DdpOptions options = {});

/// While it lives, backward communicates nothing: gradients add up until a forward and backward outside of it.
class [[nodiscard]] NoSync {
 public:
  explicit NoSync(Replicated& replicated);
  ~NoSync();
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  std::shared_ptr<Replica> replica_;
  bool before_;
};

}  // namespace lerobot::ddp
