#include "comm/exchange_plan.hpp"

#include <algorithm>

namespace lerobot::comm {
namespace {

// Up to this size an all-reduce or broadcast takes one hop: fewer messages beat fewer bytes.
constexpr std::size_t kOneHopBytes = 16 * 1024;

// Contiguous chunks of a buffer, one per rank, cut at elements; the last ones may be short or empty.
class Chunks {
 public:
  Chunks(Span whole, std::size_t itemsize, int num_ranks) : whole_(whole), itemsize_(itemsize) {
    const std::size_t numel = whole.nbytes / itemsize;
    const auto n = static_cast<std::size_t>(num_ranks);
    chunk_ = (numel + n - 1) / n * itemsize;
  }
  [[nodiscard]] Span operator[](int rank) const {
    const std::size_t begin = std::min(chunk_ * static_cast<std::size_t>(rank), whole_.nbytes);
    return {whole_.data + begin, std::min(chunk_, whole_.nbytes - begin)};
  }
  [[nodiscard]] std::size_t numel(int rank) const { return (*this)[rank].nbytes / itemsize_; }

 private:
  Span whole_;
  std::size_t itemsize_;
  std::size_t chunk_ = 0;
};

class Planner {
 public:
  Planner(const Collective& c, int rank, int num_ranks, const ScratchAllocator& scratch)
      : c_(c), rank_(rank), num_ranks_(num_ranks), scratch_(scratch), itemsize_(c10::elementSize(c.dtype)) {}

  std::vector<Stage> plan() {
    switch (c_.pattern) {
      case Pattern::kExchange:
        return {exchange()};
      case Pattern::kReduceScatter:
        return {reduce_scatter()};
      case Pattern::kAllReduce:
        if (c_.operand.nbytes <= kOneHopBytes) return {all_reduce_one_hop()};
        return all_reduce_by_chunks();
      case Pattern::kReduce:
        return {reduce_to_root()};
      case Pattern::kBroadcast:
        if (c_.operand.nbytes <= kOneHopBytes || num_ranks_ == 2) return {broadcast_one_hop()};
        return broadcast_by_chunks();
      case Pattern::kSend:
        return {Stage{{}, {{c_.peer, c_.operand}}, {}}};
      case Pattern::kReceive:
        return {Stage{{{c_.peer, c_.operand}}, {}, {}}};
    }
    return {};
  }

 private:
  template <typename F>
  void for_peers(const F& f) const {
    // Start behind the own rank, so that not all ranks send to rank 0 first.
    for (int i = 1; i < num_ranks_; ++i) f((rank_ + i) % num_ranks_);
  }

  Stage exchange() const {
    Stage stage;
    const bool is_barrier = c_.op == c10d::OpType::BARRIER;
    for_peers([&](int p) {
      const auto i = static_cast<std::size_t>(p);
      if (is_barrier || c_.receives[i].nbytes > 0) stage.receives.push_back({p, c_.receives[i]});
      if (is_barrier || c_.sends[i].nbytes > 0) stage.sends.push_back({p, c_.sends[i]});
    });
    // The own part moves while the messages are under way; its target is nobody else's.
    stage.then = [this_c = &c_, rank = rank_] { copy_own_part(*this_c, rank); };
    return stage;
  }

  // Receives every peer's operand of `mine.nbytes` and, when all are here, reduces them to `out`.
  Stage gather_and_reduce(Span mine, std::byte* out) const {
    Stage stage;
    std::byte* memory = scratch_(mine.nbytes * static_cast<std::size_t>(num_ranks_ - 1));
    std::vector<const std::byte*> operands(static_cast<std::size_t>(num_ranks_), mine.data);
    for_peers([&](int p) {
      operands[static_cast<std::size_t>(p)] = memory;
      if (mine.nbytes > 0) stage.receives.push_back({p, {memory, mine.nbytes}});
      memory += mine.nbytes;
    });
    stage.then = [this_c = &c_, operands = std::move(operands), out, numel = mine.nbytes / itemsize_] {
      reduce_in_tree_order(this_c->dtype, this_c->reduce, operands, out, numel);
    };
    return stage;
  }

  Stage reduce_scatter() const {
    Stage stage = gather_and_reduce(c_.sends[static_cast<std::size_t>(rank_)], c_.operand.data);
    for_peers([&](int p) {
      const Span& part = c_.sends[static_cast<std::size_t>(p)];
      if (part.nbytes > 0) stage.sends.push_back({p, part});
    });
    return stage;
  }

  Stage all_reduce_one_hop() const {
    Stage stage = gather_and_reduce(c_.operand, c_.operand.data);
    if (c_.operand.nbytes > 0) for_peers([&](int p) { stage.sends.push_back({p, c_.operand}); });
    return stage;
  }

  std::vector<Stage> all_reduce_by_chunks() const {
    const Chunks chunks(c_.operand, itemsize_, num_ranks_);
    Stage scatter = gather_and_reduce(chunks[rank_], chunks[rank_].data);
    for_peers([&](int p) {
      if (chunks[p].nbytes > 0) scatter.sends.push_back({p, chunks[p]});
    });
    return {std::move(scatter), all_gather(chunks)};
  }

  Stage all_gather(const Chunks& chunks) const {
    Stage stage;
    for_peers([&](int p) {
      if (chunks[p].nbytes > 0) stage.receives.push_back({p, chunks[p]});
      if (chunks[rank_].nbytes > 0) stage.sends.push_back({p, chunks[rank_]});
    });
    return stage;
  }

  Stage reduce_to_root() const {
    if (rank_ == c_.peer) return gather_and_reduce(c_.operand, c_.operand.data);
    Stage stage;
    if (c_.operand.nbytes > 0) stage.sends.push_back({c_.peer, c_.operand});
    return stage;
  }

  Stage broadcast_one_hop() const {
    Stage stage;
    if (c_.operand.nbytes == 0) return stage;
    if (rank_ == c_.peer) {
      for_peers([&](int p) { stage.sends.push_back({p, c_.operand}); });
    } else {
      stage.receives.push_back({c_.peer, c_.operand});
    }
    return stage;
  }

  // The root deals one chunk to each rank, and all ranks but the root exchange chunks: the root sends the buffer twice
  // at most, however many ranks there are.
  std::vector<Stage> broadcast_by_chunks() const {
    const Chunks chunks(c_.operand, itemsize_, num_ranks_);
    Stage deal;
    if (rank_ == c_.peer) {
      for_peers([&](int p) {
        if (chunks[p].nbytes > 0) deal.sends.push_back({p, chunks[p]});
      });
      Stage own;
      for_peers([&](int p) {
        if (chunks[rank_].nbytes > 0) own.sends.push_back({p, chunks[rank_]});
      });
      return {std::move(deal), std::move(own)};
    }
    if (chunks[rank_].nbytes > 0) deal.receives.push_back({c_.peer, chunks[rank_]});
    Stage share;
    for_peers([&](int p) {
      if (chunks[p].nbytes > 0) share.receives.push_back({p, chunks[p]});
      if (p != c_.peer && chunks[rank_].nbytes > 0) share.sends.push_back({p, chunks[rank_]});
    });
    return {std::move(deal), std::move(share)};
  }

  const Collective& c_;
  int rank_;
  int num_ranks_;
  const ScratchAllocator& scratch_;
  std::size_t itemsize_;
};

}  // namespace

std::vector<Stage> plan_exchange(const Collective& collective, int rank, int num_ranks,
                                 const ScratchAllocator& scratch) {
  return Planner(collective, rank, num_ranks, scratch).plan();
}

}  // namespace lerobot::comm
