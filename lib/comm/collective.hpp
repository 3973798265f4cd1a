#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/reduce_kernels.hpp"

namespace lerobot::comm {

/// Bytes of one tensor, or of a part of it. Empty where nothing moves.
struct Span {
  std::byte* data = nullptr;
  std::size_t nbytes = 0;
};

/// How the bytes of a collective move and meet.
enum class Pattern {
  kExchange,       ///< sends[p] goes to p, receives[p] comes from p; either may be empty
  kReduceScatter,  ///< the same, and result = reduction of what came, in rank order
  kAllReduce,      ///< result = reduction of all ranks' operands, in place
  kReduce,         ///< the same, on `peer` only
  kBroadcast,      ///< peer's operand to all, in place
  kSend,           ///< operand to `peer`
  kReceive,        ///< operand from `peer`; from anyone when peer < 0
};

/// One call of a c10d backend, checked and reduced to bytes: what MPI, threads and a recorder all understand.
struct Collective {
  c10d::OpType op = c10d::OpType::UNKNOWN;
  Pattern pattern = Pattern::kExchange;
  c10::ScalarType dtype = c10::ScalarType::Byte;
  ReduceSpec reduce;
  int peer = 0;                             ///< root, destination or source
  int tag = 0;                              ///< of send and receive
  Span operand;                             ///< in-place tensor, or the result of a reduction
  std::vector<Span> sends;                  ///< one per rank
  std::vector<Span> receives;               ///< one per rank
  std::vector<at::Tensor> inputs, outputs;  ///< kept alive until the end
  std::chrono::milliseconds timeout{c10d::kUnsetTimeout};
  bool is_async = true;  ///< false: the caller waits at once

  [[nodiscard]] std::size_t payload_bytes() const;  ///< the larger of what this rank hands in and gets back
  [[nodiscard]] std::string describe() const;       ///< "all-reduce"
};

/// The name of an operation in messages: "reduce-scatter".
std::string operation_name(c10d::OpType op);

/// Copies what rank `rank` sends to itself.
void copy_own_part(const Collective& collective, int rank);

}  // namespace lerobot::comm
