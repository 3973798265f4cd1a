#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/collective.hpp"
#include "lerobot/comm/process_group.hpp"

namespace lerobot::comm {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// What the groups of this library can do beyond c10d: they split, know the step, hold deadlines, end the job.
///
/// Turns every call of the c10d interface into one checked `Collective`, which a subclass runs. Collectives of a group
/// run in the order in which they were issued.
class GroupBackend : public c10d::Backend {
 public:
  GroupBackend(int rank, int size, std::string name) : Backend(rank, size), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Starts `collective`. The work keeps its tensors alive.
  virtual WorkPtr issue(Collective collective) = 0;
  /// The backend of the ranks that gave the same `color`, in the order of their ranks here. Collective.
  virtual c10::intrusive_ptr<GroupBackend> split_by_color(int color, const std::string& name) = 0;
  /// Ends all ranks of the job with exit code `code`.
  [[noreturn]] virtual void abort_job(int code) = 0;
  /// The training step that messages about lost ranks name.
  virtual void set_step(std::int64_t /*step*/) {}
  /// While `phase` is entered, waits end after max(timeout, `timeout_s`); phases may nest.
  virtual void enter_phase(const std::string& /*phase*/, double /*timeout_s*/) {}
  virtual void leave_phase() {}

  // c10d names from here on.
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(std::vector<at::Tensor>& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr send(std::vector<at::Tensor>& tensors, int destination, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>& tensors, int source, int tag) override;
  WorkPtr recvAnysource(std::vector<at::Tensor>& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

 protected:
  /// The number of the next collective of this group; the first is 1, as c10d counts.
  std::uint64_t next_sequence() { return ++sequence_; }

 private:
  WorkPtr issue_in_place(c10d::OpType op, Pattern pattern, const at::Tensor& tensor, Collective collective);

  std::string name_;
  std::atomic<std::uint64_t> sequence_{0};
};

/// The c10d group that sends CPU tensors through `backend`.
ProcessGroupPtr make_cpu_group(const c10::intrusive_ptr<c10d::Backend>& backend, const std::string& name);

/// The backend of CPU tensors of `group` if it is one of ours, else null.
GroupBackend* find_group_backend(c10d::ProcessGroup& group);

}  // namespace lerobot::comm
