#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "lerobot/comm/process_group.hpp"

namespace lerobot::comm {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Collectives on any c10d group, CPU or CUDA. Those that start with `start_` overlap: wait for the work before touching
// the tensors. The others are done when they return (on CUDA: in stream order), and over MPI run in the calling thread.
// They call the backend of the tensor's device directly, which saves the dispatcher's microseconds and hides that the
// names of these calls differ between versions of LibTorch.
//
// Collective: each of them, over `group`.
// Throws: Error{kComm} when tensors do not fit together, or when ranks disagree about their sizes.

/// Replaces `tensor` by the reduction over all ranks.
void all_reduce(c10d::ProcessGroup& group, const at::Tensor& tensor, const c10d::ReduceOp& op = c10d::ReduceOp::SUM);
[[nodiscard]] WorkPtr start_all_reduce(c10d::ProcessGroup& group, const at::Tensor& tensor,
                                       const c10d::ReduceOp& op = c10d::ReduceOp::SUM);

/// Fills `output` with the inputs of all ranks in rank order. `input` may be this rank's part of `output`.
void all_gather(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input);
[[nodiscard]] WorkPtr start_all_gather(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input);

/// Fills `output` with this rank's part of the reduction of `input`, which has num_ranks times its elements.
void reduce_scatter(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input,
                    const c10d::ReduceOp& op = c10d::ReduceOp::SUM);
[[nodiscard]] WorkPtr start_reduce_scatter(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input,
                                           const c10d::ReduceOp& op = c10d::ReduceOp::SUM);

/// Replaces `tensor` by the one of rank `root`.
void broadcast(c10d::ProcessGroup& group, const at::Tensor& tensor, int root = 0);

/// Returns once every rank has called it.
void barrier(c10d::ProcessGroup& group);

}  // namespace lerobot::comm
