#include "comm/work.hpp"

namespace lerobot::comm {

c10::intrusive_ptr<c10::ivalue::Future> TrackedWork::getFuture() {
  const std::lock_guard lock(future_mutex_);
  if (!future_) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    if (isCompleted()) settle(future_);
  }
  return future_;
}

void TrackedWork::complete(const std::exception_ptr& failure, int source) {
  source_ = source;
  finish(failure);
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(future_mutex_);
    done_.store(true, std::memory_order_release);
    future = future_;
  }
  // Outside the lock: callbacks of the future run here and may look at this work.
  if (future) settle(future);
}

void TrackedWork::settle(const c10::intrusive_ptr<c10::ivalue::Future>& future) {
  if (const auto failure = exception()) {
    future->setError(failure);
  } else {
    future->markCompleted(c10::IValue(outputs_));
  }
}

}  // namespace lerobot::comm
