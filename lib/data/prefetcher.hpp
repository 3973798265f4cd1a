#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lerobot/data/batch.hpp"

namespace lerobot::data {

/// Makes batches 0, 1, 2, … on threads, ahead of need, and hands them out in order.
///
/// With no thread, next() makes the batch itself. An exception of a batch comes out of the next() that would have
/// handed it out; the batches before it are still good. The destructor stops and joins the threads; a batch in the
/// making is finished first.
class Prefetcher {
 public:
  /// Makes batch `ticket`; called from any thread, once per ticket.
  using Make = std::function<Batch(std::int64_t ticket)>;

  Prefetcher(Make make, int num_threads, std::int64_t capacity,
             std::int64_t num_tickets = std::numeric_limits<std::int64_t>::max());
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next batch, or nothing after the last ticket.
  std::optional<Batch> next();
  [[nodiscard]] double last_wait_s() const { return last_wait_s_; }

 private:
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr failure;
  };
  void work();
  [[nodiscard]] Slot& slot(std::int64_t ticket) { return slots_[static_cast<std::size_t>(ticket % capacity_)]; }

  Make make_;
  std::int64_t capacity_, num_tickets_;
  std::int64_t next_out_ = 0;   ///< next ticket to hand out
  std::int64_t next_make_ = 0;  ///< next ticket to make; at most next_out_ + capacity_
  double last_wait_s_ = 0;
  bool stop_ = false;
  std::exception_ptr failed_;  ///< the failure that was handed out; every later next() repeats it
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable made_, room_;
  std::vector<std::thread> threads_;
};

}  // namespace lerobot::data
