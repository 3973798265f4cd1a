#include "comm/engine.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "lerobot/core/error.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::comm {
namespace {

// Tags below this carry collectives as (sequence, operation): ranks that disagree on what comes next do not match, and
// the deadline then names the operation. Tags from here on carry the users' send and receive.
constexpr int kPointToPointTag = 1 << 24;

// One MPI message is at most this long: counts are ints.
constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

// Scratch up to this size is kept from one collective to the next.
constexpr std::size_t kKeptScratchBytes = std::size_t{16} << 20;
constexpr std::size_t kScratchAlignment = 64;

// Polls before a waiting thread gives way to others: about 20 us.
constexpr int kPollsBeforeYield = 100;

void check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(ErrorKind::kComm, "{}: MPI says \"{}\".", what, std::string_view(text, static_cast<std::size_t>(length)));
}

int tag_of(const Collective& collective, std::uint64_t sequence) {
  const bool is_point_to_point = collective.pattern == Pattern::kSend || collective.pattern == Pattern::kReceive;
  if (is_point_to_point) return kPointToPointTag + (collective.tag & (kPointToPointTag - 1));
  return static_cast<int>((sequence & 0xffffU) << 8) | static_cast<int>(collective.op);
}

bool is_point_to_point(const Collective& collective) {
  return collective.pattern == Pattern::kSend || collective.pattern == Pattern::kReceive;
}

}  // namespace

MpiWork::MpiWork(Engine& engine, const Communicator& communicator, Collective collective, std::uint64_t sequence)
    : TrackedWork(communicator.rank, collective.op, collective.outputs, sequence),
      engine_(engine),
      communicator_(communicator),
      collective_(std::move(collective)) {}

bool MpiWork::wait(std::chrono::milliseconds /*timeout*/) {
  // Ended by the deadline of the collective: a caller that gave up earlier would leave its peers behind.
  if (!isCompleted()) engine_.wait(*this);
  if (const auto failure = exception()) std::rethrow_exception(failure);
  return true;
}

void Engine::FreeAligned::operator()(std::byte* p) const {
  ::operator delete[](p, std::align_val_t{kScratchAlignment});
}

Engine::Engine(CommOptions options) : options_(std::move(options)) {
  MPI_Comm handle = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &handle), "MPI_Comm_dup");
  adopt(handle, "world");
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (!failed_.empty()) {
    // Requests of failed collectives can't be taken back: their memory must outlive MPI.
    static_cast<void>(new std::vector(std::move(failed_)));
    static_cast<void>(scratch_.release());
    return;
  }
  for (const auto& communicator : communicators_) MPI_Comm_free(&communicator->handle);
}

const Communicator& Engine::adopt(MPI_Comm handle, const std::string& name) {
  auto communicator = std::make_unique<Communicator>();
  communicator->handle = handle;
  communicator->name = name;
  MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  MPI_Comm_rank(handle, &communicator->rank);
  MPI_Comm_size(handle, &communicator->size);
  const auto size = static_cast<std::size_t>(communicator->size);
  std::vector<int> ranks(size);
  for (std::size_t r = 0; r < size; ++r) ranks[r] = static_cast<int>(r);
  communicator->global_ranks.resize(size);
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  MPI_Comm_group(handle, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, communicator->size, ranks.data(), world, communicator->global_ranks.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  communicators_.push_back(std::move(communicator));
  return *communicators_.back();
}

const Communicator& Engine::split(const Communicator& parent, int color, const std::string& name) {
  ++num_waiting_;  // sends the thread to sleep
  const Communicator* result = nullptr;
  {
    const std::lock_guard turn(turn_);
    while (num_pending_ > 0) {
      if (!advance()) sched_yield();
    }
    MPI_Comm handle = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split(parent.handle, color, parent.rank, &handle), "MPI_Comm_split");
    result = &adopt(handle, name);
  }
  --num_waiting_;
  return *result;
}

void Engine::issue(const c10::intrusive_ptr<MpiWork>& work) {
  ++num_pending_;
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run_thread(); });
    if (is_point_to_point(work->collective_)) {
      new_point_to_point_.push_back(work);
      has_new_point_to_point_ = true;
    } else {
      queue_.push_back(work);
    }
  }
  if (!work->collective_.is_async) {
    wait(*work);
    return;
  }
  // Messages leave now if the engine is free; the thread only has to see them through.
  if (const std::unique_lock turn(turn_, std::try_to_lock); turn.owns_lock()) advance();
  if (num_pending_ > 0 && num_waiting_ == 0) wake_.notify_one();
}

void Engine::wait(MpiWork& work) {
  ++num_waiting_;
  for (int polls = 0; !work.isCompleted(); ++polls) {
    if (const std::unique_lock turn(turn_, std::try_to_lock); turn.owns_lock()) {
      while (!work.isCompleted()) {
        if (!advance() && ++polls > kPollsBeforeYield) sched_yield();
      }
    } else if (polls > kPollsBeforeYield) {
      sched_yield();
    }
  }
  if (--num_waiting_ == 0 && num_pending_ > 0) {
    const std::lock_guard lock(mutex_);  // the thread is either before its test of the condition or asleep
    wake_.notify_one();
  }
}

void Engine::run_thread() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return (num_pending_ > 0 && num_waiting_ == 0) || (stop_ && num_pending_ == 0); });
    if (num_pending_ == 0) return;
    lock.unlock();
    {
      const std::lock_guard turn(turn_);
      while (num_pending_ > 0 && num_waiting_ == 0) {
        if (!advance()) sched_yield();
      }
    }
    lock.lock();
  }
}

// One poll. True if anything was completed.
bool Engine::advance() {
  bool moved = false;
  if (has_new_point_to_point_) {
    const std::lock_guard lock(mutex_);
    for (auto& work : new_point_to_point_) point_to_point_.push_back(std::move(work));
    new_point_to_point_.clear();
    has_new_point_to_point_ = false;
  }
  if (!point_to_point_.empty()) {
    const auto is_over = [&](const auto& work) { return advance(*work); };
    moved = std::erase_if(point_to_point_, is_over) > 0;
  }
  if (!active_) {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return moved;
    active_ = std::move(queue_.front());
    queue_.pop_front();
  }
  if (advance(*active_)) {
    active_.reset();
    moved = true;
  }
  return moved;
}

// Starts `work` if it is new and moves it on. True once it is complete.
bool Engine::advance(MpiWork& work) {
  try {
    if (broken_) std::rethrow_exception(broken_);
    if (is_abandoned_) fail(ErrorKind::kComm, "{}: given up after an error on this rank.", work.collective_.describe());
    if (work.stages_.empty()) {
      work.started_ = poll_clock();
      work.stages_ = plan_exchange(work.collective_, work.communicator_.rank, work.communicator_.size,
                                   [this](std::size_t nbytes) { return allocate_scratch(nbytes); });
      post_next_stage(work);
    }
    while (test(work)) {
      if (const auto& then = work.stages_[work.next_stage_].then) then();
      if (++work.next_stage_ == work.stages_.size()) {
        finish(work, nullptr);
        return true;
      }
      post_next_stage(work);
    }
    check_deadline(work);
    return false;
  } catch (...) {
    // What peers got of this collective is unknown, so nothing after it may run.
    broken_ = std::current_exception();
    if (work.num_open_ > 0) failed_.push_back(c10::intrusive_ptr<MpiWork>::reclaim_copy(&work));
    finish(work, broken_);
    return true;
  }
}

void Engine::post_next_stage(MpiWork& work) {
  const Stage& stage = work.stages_[work.next_stage_];
  const Communicator& c = work.communicator_;
  const int tag = tag_of(work.collective_, work.sequence_);
  work.requests_.clear();
  work.in_flight_.clear();
  const auto post = [&](const Transfer& transfer, bool is_receive) {
    std::size_t begin = 0;
    do {
      const std::size_t n = std::min(kMaxMessageBytes, transfer.span.nbytes - begin);
      std::byte* const data = transfer.span.data + begin;
      MPI_Request request = MPI_REQUEST_NULL;
      if (is_receive) {
        const int source = transfer.peer < 0 ? MPI_ANY_SOURCE : transfer.peer;
        check_mpi(MPI_Irecv(data, static_cast<int>(n), MPI_BYTE, source, tag, c.handle, &request), "MPI_Irecv");
      } else {
        check_mpi(MPI_Isend(data, static_cast<int>(n), MPI_BYTE, transfer.peer, tag, c.handle, &request), "MPI_Isend");
      }
      work.requests_.push_back(request);
      work.in_flight_.push_back({transfer.peer, {data, n}});
      begin += n;
    } while (begin < transfer.span.nbytes);
  };
  for (const auto& transfer : stage.receives) post(transfer, true);
  work.num_receives_ = work.requests_.size();
  for (const auto& transfer : stage.sends) post(transfer, false);
  work.num_open_ = work.requests_.size();
}

// True when the current stage has nothing in flight.
bool Engine::test(MpiWork& work) {
  if (work.num_open_ == 0) return true;
  constexpr std::size_t kAtOnce = 64;
  int indices[kAtOnce];
  MPI_Status statuses[kAtOnce];
  // Testsome needs room for all requests; wide groups are looked at in slices.
  for (std::size_t begin = 0; begin < work.requests_.size(); begin += kAtOnce) {
    const std::size_t n = std::min(kAtOnce, work.requests_.size() - begin);
    int num_done = 0;
    const int code = MPI_Testsome(static_cast<int>(n), work.requests_.data() + begin, &num_done, indices, statuses);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check_mpi(code, "MPI_Testsome");
    if (num_done == MPI_UNDEFINED) continue;
    for (int i = 0; i < num_done; ++i) {
      const std::size_t index = begin + static_cast<std::size_t>(indices[i]);
      if (code == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR == MPI_ERR_TRUNCATE) {
        fail(ErrorKind::kComm,
             "{} on group \"{}\": rank {} sent more than the {} bytes that this rank expects. All ranks must call it "
             "with the same sizes.",
             work.collective_.describe(), work.communicator_.name,
             work.communicator_.global_ranks[static_cast<std::size_t>(statuses[i].MPI_SOURCE)],
             work.in_flight_[index].span.nbytes);
      }
      if (code == MPI_ERR_IN_STATUS) check_mpi(statuses[i].MPI_ERROR, work.collective_.describe());
      if (index < work.num_receives_) check_received(work, index, statuses[i]);
      --work.num_open_;
    }
  }
  return work.num_open_ == 0;
}

void Engine::check_received(MpiWork& work, std::size_t index, const MPI_Status& status) {
  int nbytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &nbytes);
  work.received_from_ = status.MPI_SOURCE;
  const std::size_t expected = work.in_flight_[index].span.nbytes;
  if (static_cast<std::size_t>(nbytes) == expected) return;
  fail(ErrorKind::kComm,
       "{} on group \"{}\": rank {} sent {} bytes, this rank expects {}. All ranks must call it with the same sizes.",
       work.collective_.describe(), work.communicator_.name,
       work.communicator_.global_ranks[static_cast<std::size_t>(status.MPI_SOURCE)], nbytes, expected);
}

void Engine::finish(MpiWork& work, const std::exception_ptr& failure) {
  if (!failure) {
    work.stages_.clear();
    work.collective_.inputs.clear();
    work.collective_.outputs.clear();
    if (scratch_nbytes_ > kKeptScratchBytes) {
      scratch_.reset();
      scratch_nbytes_ = 0;
    }
  }
  --num_pending_;
  work.complete(failure, work.received_from_);
}

std::byte* Engine::allocate_scratch(std::size_t nbytes) {
  if (nbytes > scratch_nbytes_) {
    scratch_.reset();
    scratch_.reset(static_cast<std::byte*>(::operator new[](nbytes, std::align_val_t{kScratchAlignment})));
    scratch_nbytes_ = nbytes;
  }
  return scratch_.get();
}

}  // namespace lerobot::comm
