#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lerobot/comm/process_group.hpp"

// The three collectives of a sharded module. They go to the group's backend, past the dispatcher: it would cost several
// microseconds each and adds nothing here. A Work given back must be waited for, which on a GPU makes the computing
// stream wait, not the host.

namespace lerobot::fsdp {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

inline int size_of(const comm::ProcessGroupPtr& group) { return group ? group->getSize() : 1; }
inline int rank_of(const comm::ProcessGroupPtr& group) { return group ? group->getRank() : 0; }

/// `input` may be the part of `output` that belongs to this rank.
inline WorkPtr all_gather(const comm::ProcessGroupPtr& group, at::Tensor output, at::Tensor input) {
  return group->getBackend(output.device().type())->_allgather_base(output, input, c10d::AllgatherOptions());
}

inline WorkPtr reduce_scatter(const comm::ProcessGroupPtr& group, at::Tensor output, at::Tensor input,
                              c10d::ReduceOp::RedOpType op) {
  c10d::ReduceScatterOptions options;
  options.reduceOp = op;
  return group->getBackend(output.device().type())->_reduce_scatter_base(output, input, options);
}

inline WorkPtr all_reduce(const comm::ProcessGroupPtr& group, const at::Tensor& tensor, c10d::ReduceOp::RedOpType op) {
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  std::vector<at::Tensor> tensors{tensor};
  return group->getBackend(tensor.device().type())->allreduce(tensors, options);
}

}  // namespace lerobot::fsdp
