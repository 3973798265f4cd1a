#include "data/prefetcher.hpp"

#include <c10/util/ParallelGuard.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>

namespace lerobot::data {

Prefetcher::Prefetcher(Make make, int num_threads, std::int64_t capacity, std::int64_t num_tickets)
    : make_(std::move(make)), capacity_(std::max<std::int64_t>(capacity, 1)), num_tickets_(num_tickets) {
  if (num_threads <= 0) return;
  slots_.resize(static_cast<std::size_t>(capacity_));
  // Signals are the main thread's to handle: threads inherit the mask they are born with.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::work() {
  // Tensor operations of a loader thread must not open a second team of threads beside the training's.
  const c10::ParallelGuard serial(true);
  std::unique_lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [&] { return stop_ || next_make_ >= num_tickets_ || next_make_ < next_out_ + capacity_; });
    if (stop_ || next_make_ >= num_tickets_) return;
    const std::int64_t ticket = next_make_++;
    lock.unlock();
    Slot made;
    try {
      made.batch = make_(ticket);
    } catch (...) {
      made.failure = std::current_exception();
    }
    lock.lock();
    slot(ticket) = std::move(made);
    made_.notify_all();
  }
}

std::optional<Batch> Prefetcher::next() {
  const auto begin = std::chrono::steady_clock::now();
  if (failed_) std::rethrow_exception(failed_);
  if (next_out_ >= num_tickets_) return std::nullopt;
  Slot taken;
  if (threads_.empty()) {
    try {
      taken.batch = make_(next_out_++);
    } catch (...) {
      taken.failure = std::current_exception();
    }
  } else {
    std::unique_lock lock(mutex_);
    Slot& wanted = slot(next_out_);
    made_.wait(lock, [&] { return wanted.batch || wanted.failure; });
    taken = std::move(wanted);
    wanted = {};
    ++next_out_;
    lock.unlock();
    room_.notify_one();
  }
  last_wait_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (taken.failure) {
    failed_ = taken.failure;
    std::rethrow_exception(failed_);
  }
  return std::move(taken.batch);
}

}  // namespace lerobot::data
