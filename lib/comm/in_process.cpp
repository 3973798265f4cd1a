#include "lerobot/comm/in_process.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <map>
#include <thread>

#include "comm/local.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::comm {
namespace {

using LocalWorkPtr = c10::intrusive_ptr<LocalWork>;

/// One rank's part of a collective, or a message, that others have yet to join.
struct Deposit {
  Collective collective;
  LocalWorkPtr work;
};

class Group;

/// What all groups of one `run_ranks` share: one lock, and who has failed or left.
struct World {
  std::mutex mutex;
  std::vector<std::shared_ptr<Group>> groups;
  std::vector<bool> has_left;
  std::exception_ptr failure;  // what ranks that still wait are told
};

/// The meeting place of the ranks of one group. The last rank to come does the work for all.
class Group {
 public:
  Group(World& world, std::vector<int> global_ranks) : world_(world), global_ranks_(std::move(global_ranks)) {}

  [[nodiscard]] int size() const { return static_cast<int>(global_ranks_.size()); }
  [[nodiscard]] World& world() const { return world_; }
  [[nodiscard]] const std::vector<int>& global_ranks() const { return global_ranks_; }

  void join(int rank, std::uint64_t sequence, Deposit deposit) {
    std::vector<Deposit> all;
    std::exception_ptr failure;
    {
      const std::lock_guard lock(world_.mutex);
      auto& meeting = meetings_[sequence];
      meeting.resize(global_ranks_.size());
      meeting[static_cast<std::size_t>(rank)] = std::move(deposit);
      failure = failure_of(meeting);
      const bool is_complete = std::all_of(meeting.begin(), meeting.end(), [](const auto& d) { return d.work; });
      if (!is_complete && !failure) return;
      all = std::move(meeting);
      meetings_.erase(sequence);
      // Under the lock, so that the collectives of the group run in order.
      if (!failure) failure = run(all);
    }
    for (const auto& d : all) {
      if (d.work) d.work->complete(failure);
    }
  }

  void send_or_receive(int rank, Deposit deposit) {
    Deposit other;
    std::exception_ptr failure;
    int sender = rank;
    const bool is_send = deposit.collective.pattern == Pattern::kSend;
    {
      const std::lock_guard lock(world_.mutex);
      auto& mine = is_send ? sends_ : receives_;
      auto& theirs = is_send ? receives_ : sends_;
      const auto match = std::find_if(theirs.begin(), theirs.end(), [&](const Message& m) {
        const int send_to = is_send ? deposit.collective.peer : m.deposit.collective.peer;
        const int receive_from = is_send ? m.deposit.collective.peer : deposit.collective.peer;
        const int from = is_send ? rank : m.rank;
        const int to = is_send ? m.rank : rank;
        return send_to == to && (receive_from < 0 || receive_from == from) &&
               m.deposit.collective.tag == deposit.collective.tag;
      });
      if (match == theirs.end() && !world_.failure) {
        mine.push_back({rank, std::move(deposit)});
        return;
      }
      failure = world_.failure;
      if (match != theirs.end()) {
        other = std::move(match->deposit);
        if (!is_send) sender = match->rank;
        theirs.erase(match);
      }
    }
    if (other.work) {
      const Span from = is_send ? deposit.collective.operand : other.collective.operand;
      const Span to = is_send ? other.collective.operand : deposit.collective.operand;
      failure = copy(from, to);
      other.work->complete(failure, sender);
    }
    deposit.work->complete(failure, sender);
  }

  /// Fails what can't be completed any more. Call with the world's lock held; complete what comes back without it.
  std::vector<Deposit> take_hopeless() {
    std::vector<Deposit> hopeless;
    for (auto it = meetings_.begin(); it != meetings_.end();) {
      if (!failure_of(it->second)) {
        ++it;
        continue;
      }
      for (auto& d : it->second) {
        if (d.work) hopeless.push_back(std::move(d));
      }
      it = meetings_.erase(it);
    }
    for (auto* messages : {&sends_, &receives_}) {
      for (auto& m : *messages) {
        if (world_.failure) hopeless.push_back(std::move(m.deposit));
      }
      if (world_.failure) messages->clear();
    }
    return hopeless;
  }

  /// The group of the ranks `members` made by split number `index` of this group; the first caller makes it.
  std::shared_ptr<Group> child(std::uint64_t index, int color, const std::vector<int>& members) {
    const std::lock_guard lock(world_.mutex);
    auto& child = children_[{index, color}];
    if (!child) {
      std::vector<int> ranks;
      for (const int r : members) ranks.push_back(global_ranks_[static_cast<std::size_t>(r)]);
      child = std::make_shared<Group>(world_, std::move(ranks));
      world_.groups.push_back(child);
    }
    return child;
  }

 private:
  struct Message {
    int rank;
    Deposit deposit;
  };

  std::exception_ptr failure_of(const std::vector<Deposit>& meeting) const {
    if (world_.failure) return world_.failure;
    for (std::size_t r = 0; r < meeting.size(); ++r) {
      if (!meeting[r].work && world_.has_left[static_cast<std::size_t>(global_ranks_[r])]) {
        return std::make_exception_ptr(Error(
            ErrorKind::kComm, fmt::format("rank {} ended without joining the collective that others wait in.", r)));
      }
    }
    return nullptr;
  }

  static std::exception_ptr run(std::vector<Deposit>& all) {
    std::vector<Collective*> collectives;
    for (auto& d : all) collectives.push_back(&d.collective);
    try {
      run_together(collectives);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  static std::exception_ptr copy(Span from, Span to) {
    if (from.nbytes != to.nbytes) {
      return std::make_exception_ptr(
          Error(ErrorKind::kComm, fmt::format("receive: got {} bytes, expected {}.", from.nbytes, to.nbytes)));
    }
    std::copy_n(from.data, from.nbytes, to.data);
    return nullptr;
  }

  World& world_;
  std::vector<int> global_ranks_;
  std::map<std::uint64_t, std::vector<Deposit>> meetings_;
  std::vector<Message> sends_, receives_;
  std::map<std::pair<std::uint64_t, int>, std::shared_ptr<Group>> children_;
};

/// Completes with errors all that waits for a rank that failed or left.
void release_hopeless(World& world) {
  std::vector<Deposit> hopeless;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(world.mutex);
    failure = world.failure;
    for (const auto& group : world.groups) {
      auto some = group->take_hopeless();
      std::move(some.begin(), some.end(), std::back_inserter(hopeless));
    }
  }
  if (!failure) {
    failure = std::make_exception_ptr(
        Error(ErrorKind::kComm, "a rank ended without joining the collective that others wait in."));
  }
  for (const auto& d : hopeless) d.work->complete(failure);
}

class InProcessBackend final : public GroupBackend {
 public:
  InProcessBackend(std::shared_ptr<Group> group, int rank, const std::string& name)
      : GroupBackend(rank, group->size(), name), group_(std::move(group)) {}

  const std::string getBackendName() const override { return "in_process"; }

  WorkPtr issue(Collective collective) override {
    const bool is_message = collective.pattern == Pattern::kSend || collective.pattern == Pattern::kReceive;
    const std::uint64_t sequence = is_message ? 0 : next_sequence();
    auto work = c10::make_intrusive<LocalWork>(rank_, collective.op, collective.outputs, sequence);
    if (is_message) {
      group_->send_or_receive(rank_, {std::move(collective), work});
    } else {
      group_->join(rank_, sequence, {std::move(collective), work});
    }
    return work;
  }

  c10::intrusive_ptr<GroupBackend> split_by_color(int color, const std::string& name) override {
    auto mine = at::full({1}, color, at::kInt);
    auto colors = at::empty({size_}, at::kInt);
    auto work = _allgather_base(colors, mine, {});
    work->wait();
    std::vector<int> members;
    for (int r = 0; r < size_; ++r) {
      if (colors.data_ptr<int>()[r] == color) members.push_back(r);
    }
    const auto position = std::find(members.begin(), members.end(), rank_) - members.begin();
    auto child = group_->child(work->getSequencenumber(), color, members);
    return c10::make_intrusive<InProcessBackend>(std::move(child), static_cast<int>(position), name);
  }

  [[noreturn]] void abort_job(int code) override {
    fail(ErrorKind::kComm, "rank {} aborts the job with code {}.", rank_, code);
  }

 private:
  std::shared_ptr<Group> group_;
};

}  // namespace

void run_ranks(int num_ranks, const std::function<void(const ProcessGroupPtr&, int)>& body) {
  World world;
  world.has_left.resize(static_cast<std::size_t>(num_ranks));
  std::vector<int> ranks;
  for (int r = 0; r < num_ranks; ++r) ranks.push_back(r);
  const auto everyone = std::make_shared<Group>(world, ranks);
  world.groups.push_back(everyone);

  std::exception_ptr first;
  const auto run_rank = [&](int rank) {
    try {
      body(make_cpu_group(c10::make_intrusive<InProcessBackend>(everyone, rank, "world"), "world"), rank);
    } catch (const std::exception& e) {
      const std::lock_guard lock(world.mutex);
      if (!first) first = std::current_exception();
      if (!world.failure) {
        world.failure =
            std::make_exception_ptr(Error(ErrorKind::kComm, fmt::format("rank {} failed: {}", rank, e.what())));
      }
    }
    {
      const std::lock_guard lock(world.mutex);
      world.has_left[static_cast<std::size_t>(rank)] = true;
    }
    release_hopeless(world);
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < num_ranks; ++r) threads.emplace_back(run_rank, r);
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace lerobot::comm
