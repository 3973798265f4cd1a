#include "comm/collective.hpp"

#include <algorithm>
#include <cstring>

namespace lerobot::comm {

std::string operation_name(c10d::OpType op) {
  using c10d::OpType;
  switch (op) {
    case OpType::BROADCAST:
      return "broadcast";
    case OpType::ALLREDUCE:
    case OpType::ALLREDUCE_COALESCED:
      return "all-reduce";
    case OpType::REDUCE:
      return "reduce";
    case OpType::ALLGATHER:
    case OpType::_ALLGATHER_BASE:
    case OpType::ALLGATHER_COALESCED:
    case OpType::ALLGATHER_INTO_TENSOR_COALESCED:
      return "all-gather";
    case OpType::GATHER:
      return "gather";
    case OpType::SCATTER:
      return "scatter";
    case OpType::REDUCE_SCATTER:
    case OpType::_REDUCE_SCATTER_BASE:
    case OpType::REDUCE_SCATTER_TENSOR_COALESCED:
      return "reduce-scatter";
    case OpType::ALLTOALL_BASE:
    case OpType::ALLTOALL:
      return "all-to-all";
    case OpType::SEND:
      return "send";
    case OpType::RECV:
    case OpType::RECVANYSOURCE:
      return "receive";
    case OpType::BARRIER:
      return "barrier";
    default:
      return c10d::opTypeToString(op);
  }
}

std::size_t Collective::payload_bytes() const {
  std::size_t in = 0, out = 0;
  for (const auto& tensor : inputs) in += tensor.nbytes();
  for (const auto& tensor : outputs) out += tensor.nbytes();
  return std::max(in, out);
}

std::string Collective::describe() const { return operation_name(op); }

void copy_own_part(const Collective& collective, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const Span& from = collective.sends[r];
  const Span& to = collective.receives[r];
  if (from.nbytes > 0 && from.data != to.data) std::memmove(to.data, from.data, from.nbytes);
}

}  // namespace lerobot::comm
