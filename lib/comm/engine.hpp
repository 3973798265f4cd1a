#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective.hpp"
#include "comm/exchange_plan.hpp"
#include "comm/work.hpp"
#include "lerobot/comm/environment.hpp"

namespace lerobot::comm {

class Engine;

/// One MPI communicator and who is in it.
struct Communicator {
  MPI_Comm handle = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::string name;
  std::vector<int> global_ranks;
};

/// A collective on its way. Whoever waits for it helps the engine along.
class MpiWork final : public TrackedWork {
 public:
  MpiWork(Engine& engine, const Communicator& communicator, Collective collective, std::uint64_t sequence);

  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }

 private:
  friend class Engine;

  Engine& engine_;  // outlives every work that is not complete, and a complete one does not touch it
  const Communicator& communicator_;
  Collective collective_;

  std::vector<Stage> stages_;
  std::size_t next_stage_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Transfer> in_flight_;  // of each request; receives first
  std::size_t num_receives_ = 0;
  std::size_t num_open_ = 0;
  int received_from_ = -1;
  std::chrono::steady_clock::time_point started_;  // on the engine's polling clock
};

/// Owns MPI in this process: one queue of collectives for all groups, run in order of issue.
///
/// MPI moves bytes only while somebody calls it. A rank that waits for a result does that itself, so a collective with
/// nothing to overlap runs in its caller and costs no thread switch. While nobody waits but work is pending, the
/// engine's thread polls, yielding; it steps back as soon as somebody waits, and sleeps when nothing is pending.
class Engine {
 public:
  explicit Engine(CommOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const Communicator& world() const { return *communicators_.front(); }
  /// Collective over `parent`, with nothing pending anywhere in it.
  const Communicator& split(const Communicator& parent, int color, const std::string& name);

  void issue(const c10::intrusive_ptr<MpiWork>& work);
  void wait(MpiWork& work);
  /// Gives up everything that is pending, so that an exception can unwind without waiting for peers.
  void abandon() { is_abandoned_ = true; }

  void set_step(std::int64_t step) { step_ = step; }
  void enter_phase(const std::string& phase, double timeout_s);
  void leave_phase();
  [[noreturn]] void abort_job(int code);

 private:
  using Clock = std::chrono::steady_clock;

  void run_thread();
  bool advance();
  bool advance(MpiWork& work);
  void post_next_stage(MpiWork& work);
  bool test(MpiWork& work);
  void check_received(MpiWork& work, std::size_t index, const MPI_Status& status);
  void finish(MpiWork& work, const std::exception_ptr& failure);
  std::byte* allocate_scratch(std::size_t nbytes);
  Clock::time_point poll_clock();
  void check_deadline(const MpiWork& work);
  [[noreturn]] void expire(const MpiWork& work, double waited_s);
  const Communicator& adopt(MPI_Comm handle, const std::string& name);

  CommOptions options_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::atomic<std::int64_t> step_{-1};

  // Whoever holds `turn_` is the only one to call MPI and to touch what follows.
  std::mutex turn_;
  c10::intrusive_ptr<MpiWork> active_;
  std::vector<c10::intrusive_ptr<MpiWork>> point_to_point_;
  std::exception_ptr broken_;
  std::vector<c10::intrusive_ptr<MpiWork>> failed_;  // MPI may still write to their memory
  Clock::time_point last_poll_{};
  Clock::duration not_polling_{};
  Clock::time_point phase_end_{};
  struct FreeAligned {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], FreeAligned> scratch_;
  std::size_t scratch_nbytes_ = 0;

  std::mutex mutex_;  // guards the queues, the thread and the phases
  std::condition_variable wake_;
  std::deque<c10::intrusive_ptr<MpiWork>> queue_;
  std::deque<c10::intrusive_ptr<MpiWork>> new_point_to_point_;
  std::thread thread_;
  bool stop_ = false;
  struct Phase {
    std::string name;
    double timeout_s;
  };
  std::vector<Phase> phases_;
  std::atomic<bool> phase_has_ended_{false};
  std::atomic<bool> is_abandoned_{false};
  std::atomic<bool> has_new_point_to_point_{false};
  std::atomic<int> num_pending_{0};
  std::atomic<int> num_waiting_{0};
};

}  // namespace lerobot::comm
