#include "comm/mpi_backend.hpp"

#include "comm/local.hpp"

namespace lerobot::comm {

MpiBackend::MpiBackend(std::shared_ptr<Engine> engine, const Communicator& communicator)
    : GroupBackend(communicator.rank, communicator.size, communicator.name),
      engine_(std::move(engine)),
      communicator_(communicator) {}

WorkPtr MpiBackend::issue(Collective collective) {
  if (size_ == 1) return run_alone(std::move(collective), next_sequence());
  if (collective.timeout <= std::chrono::milliseconds::zero()) collective.timeout = timeout_;
  const bool is_message = collective.pattern == Pattern::kSend || collective.pattern == Pattern::kReceive;
  const std::uint64_t sequence = is_message ? 0 : next_sequence();
  auto work = c10::make_intrusive<MpiWork>(*engine_, communicator_, std::move(collective), sequence);
  engine_->issue(work);
  return work;
}

c10::intrusive_ptr<GroupBackend> MpiBackend::split_by_color(int color, const std::string& name) {
  // MPI_Comm_split waits without a deadline; after this barrier all ranks are about to call it.
  barrier({})->wait();
  return c10::make_intrusive<MpiBackend>(engine_, engine_->split(communicator_, color, name));
}

}  // namespace lerobot::comm
