// What the engine does when ranks do not arrive.
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "comm/engine.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::comm {

void Engine::enter_phase(const std::string& phase, double timeout_s) {
  const std::lock_guard lock(mutex_);
  phases_.push_back({phase, timeout_s});
}

void Engine::leave_phase() {
  const std::lock_guard lock(mutex_);
  phases_.pop_back();
  phase_has_ended_ = true;
}

// A clock that runs only while somebody polls. A longer gap means that this process was stopped (or had nothing to do),
// which is not the fault of its peers.
Engine::Clock::time_point Engine::poll_clock() {
  constexpr std::chrono::seconds kSuspended{1};
  const auto now = Clock::now();
  if (now - last_poll_ > kSuspended) not_polling_ += now - last_poll_;
  last_poll_ = now;
  return now - not_polling_;
}

void Engine::check_deadline(const MpiWork& work) {
  using Seconds = std::chrono::duration<double>;
  const auto now = poll_clock();
  const auto own_timeout = work.collective_.timeout;
  Seconds limit = own_timeout > own_timeout.zero() ? Seconds(own_timeout) : Seconds(options_.timeout_s);
  if (phase_has_ended_.exchange(false)) phase_end_ = now;  // what is still waiting gets its whole time again
  const Seconds waited = now - std::max(work.started_, phase_end_);
  if (waited <= limit) return;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& phase : phases_) limit = std::max(limit, Seconds(phase.timeout_s));
  }
  if (waited > limit) expire(work, waited.count());
}

void Engine::expire(const MpiWork& work, double waited_s) {
  const Communicator& c = work.communicator_;
  // Messages go straight between ranks: an open receive means that its sender did not come to this collective.
  std::vector<int> missing;
  const auto collect = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const int peer = work.in_flight_[i].peer;
      if (work.requests_[i] == MPI_REQUEST_NULL || peer < 0) continue;
      missing.push_back(c.global_ranks[static_cast<std::size_t>(peer)]);
    }
  };
  collect(0, work.num_receives_);
  if (missing.empty()) collect(work.num_receives_, work.requests_.size());
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());

  // All ranks that wait run out of time together. The first of them speaks and ends the job; the others only step in
  // if it does not.
  const int self = c.global_ranks[static_cast<std::size_t>(c.rank)];
  for (const int rank : c.global_ranks) {
    if (std::find(missing.begin(), missing.end(), rank) != missing.end()) continue;
    if (rank != self) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    break;
  }
  const std::int64_t step = step_;
  const std::string line = fmt::format(
      "rank {}: {} on group \"{}\" waited {:.1f} s at step {} for rank {}, which did not arrive (sequence number {}, "
      "{} "
      "bytes). The job ends with code {}; see what that rank did last, or raise --timeout_s.",
      self, work.collective_.describe(), c.name, waited_s, step < 0 ? "none" : std::to_string(step),
      missing.empty() ? "(any)" : fmt::format("{}", fmt::join(missing, ", ")), work.sequence_,
      work.collective_.payload_bytes(), exit_code(ErrorKind::kComm));
  if (options_.logger != nullptr) options_.logger->error("{}", line);
  if (options_.on_lost) options_.on_lost(line);
  abort_job(exit_code(ErrorKind::kComm));
}

void Engine::abort_job(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();  // MPI_Abort does not return
}

}  // namespace lerobot::comm
