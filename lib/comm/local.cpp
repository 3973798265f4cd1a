#include "comm/local.hpp"

#include <cstring>

#include "lerobot/core/error.hpp"

namespace lerobot::comm {
namespace {

[[noreturn]] void disagree(const Collective& first, std::size_t rank, const Collective& other) {
  fail(ErrorKind::kComm,
       "ranks disagree: rank 0 calls {} ({}, {} bytes), rank {} calls {} ({}, {} bytes). All ranks must call the same "
       "operation with the same sizes.",
       first.describe(), c10::toString(first.dtype), first.operand.nbytes, rank, other.describe(),
       c10::toString(other.dtype), other.operand.nbytes);
}

std::vector<const std::byte*> operands_of(std::span<Collective* const> all) {
  std::vector<const std::byte*> operands;
  for (const auto* c : all) operands.push_back(c->operand.data);
  return operands;
}

void exchange(std::span<Collective* const> all) {
  for (std::size_t from = 0; from < all.size(); ++from) {
    for (std::size_t to = 0; to < all.size(); ++to) {
      const Span& sent = all[from]->sends[to];
      const Span& received = all[to]->receives[from];
      if (sent.nbytes != received.nbytes) {
        fail(ErrorKind::kComm, "{}: rank {} sends {} bytes to rank {}, which expects {}.", all[from]->describe(), from,
             sent.nbytes, to, received.nbytes);
      }
      if (sent.nbytes > 0 && sent.data != received.data) std::memmove(received.data, sent.data, sent.nbytes);
    }
  }
}

void reduce_scatter(std::span<Collective* const> all) {
  for (std::size_t to = 0; to < all.size(); ++to) {
    Collective& target = *all[to];
    std::vector<const std::byte*> parts;
    for (const auto* c : all) parts.push_back(c->sends[to].data);
    const std::size_t numel = target.operand.nbytes / c10::elementSize(target.dtype);
    reduce_in_tree_order(target.dtype, target.reduce, parts, target.operand.data, numel);
  }
}

// Reduces into `first` and copies from there.
void reduce_to(std::span<Collective* const> all, std::size_t first, bool to_all) {
  Collective& target = *all[first];
  const std::size_t numel = target.operand.nbytes / c10::elementSize(target.dtype);
  reduce_in_tree_order(target.dtype, target.reduce, operands_of(all), target.operand.data, numel);
  if (!to_all) return;
  for (auto* c : all) {
    if (c != &target) std::memcpy(c->operand.data, target.operand.data, target.operand.nbytes);
  }
}

}  // namespace

void run_together(std::span<Collective* const> all) {
  const Collective& first = *all[0];
  for (std::size_t r = 1; r < all.size(); ++r) {
    const Collective& other = *all[r];
    if (other.op != first.op || other.dtype != first.dtype || other.peer != first.peer ||
        other.operand.nbytes != first.operand.nbytes) {
      disagree(first, r, other);
    }
  }
  switch (first.pattern) {
    case Pattern::kExchange:
      return exchange(all);
    case Pattern::kReduceScatter:
      return reduce_scatter(all);
    case Pattern::kAllReduce:
      return reduce_to(all, 0, true);
    case Pattern::kReduce:
      return reduce_to(all, static_cast<std::size_t>(first.peer), false);
    case Pattern::kBroadcast: {
      const Span& root = all[static_cast<std::size_t>(first.peer)]->operand;
      for (auto* c : all) {
        if (c->operand.data != root.data && root.nbytes > 0) std::memcpy(c->operand.data, root.data, root.nbytes);
      }
      return;
    }
    case Pattern::kSend:
    case Pattern::kReceive:
      fail(ErrorKind::kComm, "{}: a group of one rank has nobody to talk to.", first.describe());
  }
}

WorkPtr run_alone(Collective collective, std::uint64_t sequence) {
  Collective* self = &collective;
  run_together({&self, 1});
  auto work = c10::make_intrusive<LocalWork>(0, collective.op, collective.outputs, sequence);
  work->complete();
  return work;
}

}  // namespace lerobot::comm
