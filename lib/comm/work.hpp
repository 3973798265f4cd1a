#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace lerobot::comm {

/// A work that somebody else completes, with the future that the Reducer of c10d asks for.
class TrackedWork : public c10d::Work {
 public:
  TrackedWork(int rank, c10d::OpType op, std::vector<at::Tensor> outputs, std::uint64_t sequence)
      : Work(rank, op), outputs_(std::move(outputs)), sequence_(sequence) {}

  bool isCompleted() override { return done_.load(std::memory_order_acquire); }
  std::vector<at::Tensor> result() override { return outputs_; }
  int sourceRank() const override { return source_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }
  /// A future of the list of output tensors.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  /// Marks it complete, with an error if `failure` is one. `source`: who sent, for a receive from anyone.
  void complete(const std::exception_ptr& failure = nullptr, int source = -1);

 protected:
  std::vector<at::Tensor> outputs_;
  const std::uint64_t sequence_;

 private:
  void settle(const c10::intrusive_ptr<c10::ivalue::Future>& future);

  int source_ = -1;
  std::atomic<bool> done_{false};
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace lerobot::comm
