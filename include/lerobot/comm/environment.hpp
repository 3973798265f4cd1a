#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "lerobot/comm/process_group.hpp"

namespace lerobot::log {
class Logger;
}

namespace lerobot::comm {

class Engine;

/// How a process talks to the others of its job.
struct CommOptions {
  /// A collective that waits longer than this for its peers ends the job with exit code 3.
  double timeout_s = 600.0;
  /// Says which ranks were lost before the job ends; null: one made for this rank. Must outlive the environment.
  log::Logger* logger = nullptr;
  /// Called with that line before the job ends, to leave a trace in a file.
  std::function<void(std::string_view line)> on_lost = {};
};

/// The MPI session of this process: starts MPI on first use, ends it with the scope.
///
/// Make one in `main`. Without mpirun it is a job of one rank. Nothing starts before one of its functions is called, so
/// `--help` needs no MPI. Where MPI was started by someone else, they end it. When the scope ends by an exception the
/// whole job is aborted with code 1: peers may be waiting for this rank, and MPI_Finalize would wait for them.
/// Not thread-safe: use it from the main thread.
class MpiEnvironment {
 public:
  MpiEnvironment();
  MpiEnvironment(int& argc, char**& argv);
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  [[nodiscard]] int rank();        ///< global rank
  [[nodiscard]] int world_size();  ///< number of ranks of the job
  [[nodiscard]] int local_rank();  ///< rank among those of this host
  [[nodiscard]] int local_size();  ///< number of ranks on this host

  /// The group "world" of all ranks, for CPU tensors. `options` count on the first call; later calls give the same
  /// group.
  ///
  /// Its sums have one fixed order, see `tree_reduce`. Works complete in order of issue.
  ///
  /// Collective: over all ranks, the first time.
  /// Throws: Error{kComm} when MPI gives no thread support.
  [[nodiscard]] ProcessGroupPtr world(const CommOptions& options = {});

  /// Ends all ranks at once with this exit code. For failures that the other ranks do not know of.
  [[noreturn]] void abort(int code);

 private:
  void start();

  int* argc_ = nullptr;
  char*** argv_ = nullptr;
  bool is_started_ = false;
  bool owns_mpi_ = false;
  int rank_ = 0, world_size_ = 1, local_rank_ = 0, local_size_ = 1;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<log::Logger> logger_;
  ProcessGroupPtr world_;
};

}  // namespace lerobot::comm
