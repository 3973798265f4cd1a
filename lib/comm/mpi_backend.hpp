#pragma once

#include <memory>
#include <string>

#include "comm/engine.hpp"
#include "comm/group_backend.hpp"

namespace lerobot::comm {

/// A group over MPI. All groups of a process share one engine.
class MpiBackend final : public GroupBackend {
 public:
  MpiBackend(std::shared_ptr<Engine> engine, const Communicator& communicator);

  const std::string getBackendName() const override { return "mpi"; }
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }

  WorkPtr issue(Collective collective) override;
  c10::intrusive_ptr<GroupBackend> split_by_color(int color, const std::string& name) override;
  [[noreturn]] void abort_job(int code) override { engine_->abort_job(code); }
  void set_step(std::int64_t step) override { engine_->set_step(step); }
  void enter_phase(const std::string& phase, double timeout_s) override { engine_->enter_phase(phase, timeout_s); }
  void leave_phase() override { engine_->leave_phase(); }
  /// Ends the job: a group of MPI cannot be given up by one rank alone.
  void abort() override { engine_->abort_job(3); }

 private:
  std::shared_ptr<Engine> engine_;
  const Communicator& communicator_;
  std::chrono::milliseconds timeout_{c10d::kUnsetTimeout};
};

}  // namespace lerobot::comm
