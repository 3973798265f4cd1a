#include "comm/group_backend.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "lerobot/core/error.hpp"

namespace lerobot::comm {
namespace {

using at::Tensor;
using c10d::OpType;

std::string shape_of(const Tensor& tensor) {
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

Span bytes_of(const Tensor& tensor) { return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()}; }

// The part of `tensor` that rank `rank` of `num_ranks` equal parts owns.
Span part_of(const Tensor& tensor, int rank, int num_ranks) {
  const std::size_t part = tensor.nbytes() / static_cast<std::size_t>(num_ranks);
  return {static_cast<std::byte*>(tensor.data_ptr()) + part * static_cast<std::size_t>(rank), part};
}

void check_dense(OpType op, const Tensor& tensor) {
  if (!tensor.device().is_cpu()) {
    fail(ErrorKind::kComm, "{}: got a tensor on {}; this group moves CPU tensors. Use a group made for that device.",
         operation_name(op), tensor.device().str());
  }
  if (tensor.layout() != c10::kStrided || !tensor.is_non_overlapping_and_dense()) {
    fail(ErrorKind::kComm, "{}: tensor {} is not dense in memory; pass tensor.contiguous().", operation_name(op),
         shape_of(tensor));
  }
}

// Parts of a tensor are its bytes in logical order only if it is contiguous.
void check_contiguous(OpType op, const Tensor& tensor) {
  check_dense(op, tensor);
  if (!tensor.is_contiguous()) {
    fail(ErrorKind::kComm, "{}: tensor {} is not contiguous; pass tensor.contiguous().", operation_name(op),
         shape_of(tensor));
  }
}

const Tensor& single(OpType op, const std::vector<Tensor>& tensors) {
  if (tensors.size() != 1) {
    fail(ErrorKind::kComm, "{}: got {} tensors; expected 1 per rank.", operation_name(op), tensors.size());
  }
  return tensors.front();
}

void check_same(OpType op, const Tensor& a, const Tensor& b, std::int64_t factor) {
  if (a.scalar_type() != b.scalar_type() || a.numel() != b.numel() * factor) {
    fail(ErrorKind::kComm, "{}: {} does not fit {}; expected the same dtype and {} times its elements.",
         operation_name(op), shape_of(a), shape_of(b), factor);
  }
}

void check_count(OpType op, const std::vector<Tensor>& tensors, int num_ranks) {
  if (tensors.size() != static_cast<std::size_t>(num_ranks)) {
    fail(ErrorKind::kComm, "{}: got {} tensors; expected one for each of {} ranks.", operation_name(op), tensors.size(),
         num_ranks);
  }
}

ReduceSpec reduce_spec(OpType op, const c10d::ReduceOp& reduce_op, int num_ranks) {
  ReduceSpec spec;
  switch (reduce_op.op_) {
    case c10d::ReduceOp::SUM:
      break;
    case c10d::ReduceOp::AVG:
      spec.divisor = num_ranks;
      break;
    case c10d::ReduceOp::PRODUCT:
      spec.reduction = Reduction::kProduct;
      break;
    case c10d::ReduceOp::MIN:
      spec.reduction = Reduction::kMin;
      break;
    case c10d::ReduceOp::MAX:
      spec.reduction = Reduction::kMax;
      break;
    case c10d::ReduceOp::BAND:
      spec.reduction = Reduction::kBitAnd;
      break;
    case c10d::ReduceOp::BOR:
      spec.reduction = Reduction::kBitOr;
      break;
    case c10d::ReduceOp::BXOR:
      spec.reduction = Reduction::kBitXor;
      break;
    case c10d::ReduceOp::PREMUL_SUM: {
      const auto* factor = dynamic_cast<const c10d::PreMulSumSupplement*>(reduce_op.supplement_.get());
      if (factor == nullptr) fail(ErrorKind::kComm, "{}: PREMUL_SUM came without its factor.", operation_name(op));
      spec.factor = factor->tensor_factor.defined() ? factor->tensor_factor.item<double>() : factor->double_factor;
      break;
    }
    default:
      fail(ErrorKind::kComm, "{}: reduction {} is unknown.", operation_name(op), static_cast<int>(reduce_op.op_));
  }
  return spec;
}

// The fields that every call has.
template <typename Options>
Collective make(OpType op, Pattern pattern, const Options& options) {
  Collective c;
  c.op = op;
  c.pattern = pattern;
  c.timeout = options.timeout;
  c.is_async = options.asyncOp;
  return c;
}

std::vector<Span> spans_of(const std::vector<Tensor>& tensors) {
  std::vector<Span> spans;
  spans.reserve(tensors.size());
  for (const auto& tensor : tensors) spans.push_back(bytes_of(tensor));
  return spans;
}

std::vector<Span> parts_of(const Tensor& tensor, int num_ranks) {
  std::vector<Span> spans;
  spans.reserve(static_cast<std::size_t>(num_ranks));
  for (int r = 0; r < num_ranks; ++r) spans.push_back(part_of(tensor, r, num_ranks));
  return spans;
}

// Row counts to byte ranges; no counts means equal parts.
std::vector<Span> splits_of(const Tensor& tensor, const std::vector<std::int64_t>& splits, int num_ranks) {
  if (splits.empty()) {
    if (tensor.dim() == 0 || tensor.size(0) % num_ranks != 0) {
      fail(ErrorKind::kComm, "all-to-all: dim 0 of {} is not divisible by {} ranks; give the split sizes.",
           shape_of(tensor), num_ranks);
    }
    return parts_of(tensor, num_ranks);
  }
  const std::int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  const std::int64_t sum = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
  if (splits.size() != static_cast<std::size_t>(num_ranks) || sum != rows ||
      std::any_of(splits.begin(), splits.end(), [](std::int64_t n) { return n < 0; })) {
    fail(ErrorKind::kComm, "all-to-all: split sizes [{}] do not cover dim 0 of {} for {} ranks.",
         fmt::join(splits, ", "), shape_of(tensor), num_ranks);
  }
  const std::size_t row_bytes = rows == 0 ? 0 : tensor.nbytes() / static_cast<std::size_t>(rows);
  std::vector<Span> spans;
  auto* data = static_cast<std::byte*>(tensor.data_ptr());
  for (const std::int64_t n : splits) {
    spans.push_back({data, static_cast<std::size_t>(n) * row_bytes});
    data += spans.back().nbytes;
  }
  return spans;
}

}  // namespace

WorkPtr GroupBackend::issue_in_place(OpType op, Pattern pattern, const Tensor& tensor, Collective c) {
  check_dense(op, tensor);
  c.op = op;
  c.pattern = pattern;
  c.dtype = tensor.scalar_type();
  c.operand = bytes_of(tensor);
  c.inputs = {tensor};
  c.outputs = {tensor};
  if (c.peer >= size_ || (c.peer < 0 && pattern != Pattern::kReceive)) {
    fail(ErrorKind::kComm, "{}: rank {} is not in group \"{}\" of {} ranks.", operation_name(op), c.peer, name_, size_);
  }
  return issue(std::move(c));
}

WorkPtr GroupBackend::broadcast(std::vector<Tensor>& tensors, const c10d::BroadcastOptions& options) {
  Collective c = make(OpType::BROADCAST, Pattern::kBroadcast, options);
  c.peer = static_cast<int>(options.rootRank);
  return issue_in_place(OpType::BROADCAST, Pattern::kBroadcast, single(OpType::BROADCAST, tensors), std::move(c));
}

WorkPtr GroupBackend::allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) {
  Collective c = make(OpType::ALLREDUCE, Pattern::kAllReduce, options);
  c.reduce = reduce_spec(c.op, options.reduceOp, size_);
  return issue_in_place(c.op, c.pattern, single(c.op, tensors), std::move(c));
}

// The coalesced forms issue one collective per tensor. They run in order, so the last one stands for all.
WorkPtr GroupBackend::allreduce_coalesced(std::vector<Tensor>& tensors,
                                          const c10d::AllreduceCoalescedOptions& options) {
  WorkPtr last;
  for (auto& tensor : tensors) {
    std::vector<Tensor> one{tensor};
    last = allreduce(one, options);
  }
  return last ? last : barrier({});
}

WorkPtr GroupBackend::reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) {
  Collective c = make(OpType::REDUCE, Pattern::kReduce, options);
  c.peer = static_cast<int>(options.rootRank);
  c.reduce = reduce_spec(c.op, options.reduceOp, size_);
  return issue_in_place(c.op, c.pattern, single(c.op, tensors), std::move(c));
}

WorkPtr GroupBackend::allgather(std::vector<std::vector<Tensor>>& outputs, std::vector<Tensor>& inputs,
                                const c10d::AllgatherOptions& options) {
  Collective c = make(OpType::ALLGATHER, Pattern::kExchange, options);
  c.inputs = {single(c.op, inputs)};
  if (outputs.size() != 1) fail(ErrorKind::kComm, "all-gather: got {} output lists; expected 1.", outputs.size());
  c.outputs = outputs.front();
  check_count(c.op, c.outputs, size_);
  check_contiguous(c.op, c.inputs[0]);
  for (const auto& output : c.outputs) {
    check_contiguous(c.op, output);
    check_same(c.op, output, c.inputs[0], 1);
  }
  c.dtype = c.inputs[0].scalar_type();
  c.sends.assign(static_cast<std::size_t>(size_), bytes_of(c.inputs[0]));
  c.receives = spans_of(c.outputs);
  return issue(std::move(c));
}

WorkPtr GroupBackend::_allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions& options) {
  Collective c = make(OpType::_ALLGATHER_BASE, Pattern::kExchange, options);
  check_contiguous(c.op, input);
  check_contiguous(c.op, output);
  check_same(c.op, output, input, size_);
  c.inputs = {input};
  c.outputs = {output};
  c.dtype = input.scalar_type();
  c.sends.assign(static_cast<std::size_t>(size_), bytes_of(input));
  c.receives = parts_of(output, size_);
  return issue(std::move(c));
}

WorkPtr GroupBackend::allgather_into_tensor_coalesced(std::vector<Tensor>& outputs, std::vector<Tensor>& inputs,
                                                      const c10d::AllgatherOptions& options) {
  WorkPtr last;
  for (std::size_t i = 0; i < inputs.size(); ++i) last = _allgather_base(outputs.at(i), inputs[i], options);
  return last ? last : barrier({});
}

WorkPtr GroupBackend::gather(std::vector<std::vector<Tensor>>& outputs, std::vector<Tensor>& inputs,
                             const c10d::GatherOptions& options) {
  Collective c = make(OpType::GATHER, Pattern::kExchange, options);
  const auto root = static_cast<std::size_t>(options.rootRank);
  c.peer = static_cast<int>(options.rootRank);
  c.inputs = {single(c.op, inputs)};
  check_contiguous(c.op, c.inputs[0]);
  c.dtype = c.inputs[0].scalar_type();
  c.sends.resize(static_cast<std::size_t>(size_));
  c.receives.resize(static_cast<std::size_t>(size_));
  c.sends.at(root) = bytes_of(c.inputs[0]);
  if (rank_ == c.peer) {
    if (outputs.size() != 1)
      fail(ErrorKind::kComm, "gather: the root got {} output lists; expected 1.", outputs.size());
    c.outputs = outputs.front();
    check_count(c.op, c.outputs, size_);
    for (const auto& output : c.outputs) {
      check_contiguous(c.op, output);
      check_same(c.op, output, c.inputs[0], 1);
    }
    c.receives = spans_of(c.outputs);
  }
  return issue(std::move(c));
}

WorkPtr GroupBackend::scatter(std::vector<Tensor>& outputs, std::vector<std::vector<Tensor>>& inputs,
                              const c10d::ScatterOptions& options) {
  Collective c = make(OpType::SCATTER, Pattern::kExchange, options);
  c.peer = static_cast<int>(options.rootRank);
  c.outputs = {single(c.op, outputs)};
  check_contiguous(c.op, c.outputs[0]);
  c.dtype = c.outputs[0].scalar_type();
  c.sends.resize(static_cast<std::size_t>(size_));
  c.receives.resize(static_cast<std::size_t>(size_));
  c.receives.at(static_cast<std::size_t>(options.rootRank)) = bytes_of(c.outputs[0]);
  if (rank_ == c.peer) {
    if (inputs.size() != 1) fail(ErrorKind::kComm, "scatter: the root got {} input lists; expected 1.", inputs.size());
    c.inputs = inputs.front();
    check_count(c.op, c.inputs, size_);
    for (const auto& input : c.inputs) {
      check_contiguous(c.op, input);
      check_same(c.op, input, c.outputs[0], 1);
    }
    c.sends = spans_of(c.inputs);
  }
  return issue(std::move(c));
}

WorkPtr GroupBackend::reduce_scatter(std::vector<Tensor>& outputs, std::vector<std::vector<Tensor>>& inputs,
                                     const c10d::ReduceScatterOptions& options) {
  Collective c = make(OpType::REDUCE_SCATTER, Pattern::kReduceScatter, options);
  c.outputs = {single(c.op, outputs)};
  if (inputs.size() != 1) fail(ErrorKind::kComm, "reduce-scatter: got {} input lists; expected 1.", inputs.size());
  c.inputs = inputs.front();
  check_count(c.op, c.inputs, size_);
  check_contiguous(c.op, c.outputs[0]);
  for (const auto& input : c.inputs) {
    check_contiguous(c.op, input);
    check_same(c.op, input, c.outputs[0], 1);
  }
  c.reduce = reduce_spec(c.op, options.reduceOp, size_);
  c.dtype = c.outputs[0].scalar_type();
  c.operand = bytes_of(c.outputs[0]);
  c.sends = spans_of(c.inputs);
  return issue(std::move(c));
}

WorkPtr GroupBackend::_reduce_scatter_base(Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) {
  Collective c = make(OpType::_REDUCE_SCATTER_BASE, Pattern::kReduceScatter, options);
  check_contiguous(c.op, input);
  check_contiguous(c.op, output);
  check_same(c.op, input, output, size_);
  c.reduce = reduce_spec(c.op, options.reduceOp, size_);
  c.inputs = {input};
  c.outputs = {output};
  c.dtype = input.scalar_type();
  c.operand = bytes_of(output);
  c.sends = parts_of(input, size_);
  return issue(std::move(c));
}

WorkPtr GroupBackend::reduce_scatter_tensor_coalesced(std::vector<Tensor>& outputs, std::vector<Tensor>& inputs,
                                                      const c10d::ReduceScatterOptions& options) {
  WorkPtr last;
  for (std::size_t i = 0; i < inputs.size(); ++i) last = _reduce_scatter_base(outputs.at(i), inputs[i], options);
  return last ? last : barrier({});
}

WorkPtr GroupBackend::alltoall_base(Tensor& output, Tensor& input, std::vector<std::int64_t>& output_splits,
                                    std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  Collective c = make(OpType::ALLTOALL_BASE, Pattern::kExchange, options);
  check_contiguous(c.op, input);
  check_contiguous(c.op, output);
  if (input.scalar_type() != output.scalar_type()) check_same(c.op, output, input, 1);
  c.inputs = {input};
  c.outputs = {output};
  c.dtype = input.scalar_type();
  c.sends = splits_of(input, input_splits, size_);
  c.receives = splits_of(output, output_splits, size_);
  return issue(std::move(c));
}

WorkPtr GroupBackend::alltoall(std::vector<Tensor>& outputs, std::vector<Tensor>& inputs,
                               const c10d::AllToAllOptions& options) {
  Collective c = make(OpType::ALLTOALL, Pattern::kExchange, options);
  check_count(c.op, inputs, size_);
  check_count(c.op, outputs, size_);
  for (const auto& tensor : inputs) check_contiguous(c.op, tensor);
  for (const auto& tensor : outputs) check_contiguous(c.op, tensor);
  c.inputs = inputs;
  c.outputs = outputs;
  c.dtype = inputs.front().scalar_type();
  c.sends = spans_of(inputs);
  c.receives = spans_of(outputs);
  return issue(std::move(c));
}

WorkPtr GroupBackend::send(std::vector<Tensor>& tensors, int destination, int tag) {
  Collective c;
  c.peer = destination;
  c.tag = tag;
  return issue_in_place(OpType::SEND, Pattern::kSend, single(OpType::SEND, tensors), std::move(c));
}

WorkPtr GroupBackend::recv(std::vector<Tensor>& tensors, int source, int tag) {
  Collective c;
  c.peer = source;
  c.tag = tag;
  return issue_in_place(OpType::RECV, Pattern::kReceive, single(OpType::RECV, tensors), std::move(c));
}

WorkPtr GroupBackend::recvAnysource(std::vector<Tensor>& tensors, int tag) {
  Collective c;
  c.peer = -1;
  c.tag = tag;
  return issue_in_place(OpType::RECVANYSOURCE, Pattern::kReceive, single(OpType::RECVANYSOURCE, tensors), std::move(c));
}

WorkPtr GroupBackend::barrier(const c10d::BarrierOptions& options) {
  Collective c = make(OpType::BARRIER, Pattern::kExchange, options);
  c.sends.resize(static_cast<std::size_t>(size_));
  c.receives.resize(static_cast<std::size_t>(size_));
  return issue(std::move(c));
}

ProcessGroupPtr make_cpu_group(const c10::intrusive_ptr<c10d::Backend>& backend, const std::string& name) {
  constexpr auto kType = c10d::ProcessGroup::BackendType::MPI;
  auto group = c10::make_intrusive<c10d::ProcessGroup>(backend->getRank(), backend->getSize());
  group->setBackend(c10::DeviceType::CPU, kType, backend);
  group->setDefaultBackend(kType);
  group->setGroupName(name);
  group->setGroupDesc(name);
  return group;
}

GroupBackend* find_group_backend(c10d::ProcessGroup& group) {
  const auto devices = group.getDeviceTypes();
  const bool has_cpu = std::any_of(devices.begin(), devices.end(), [](const c10::Device& d) { return d.is_cpu(); });
  return has_cpu ? dynamic_cast<GroupBackend*>(group.getBackend(c10::DeviceType::CPU).get()) : nullptr;
}

}  // namespace lerobot::comm
