#include "lerobot/comm/environment.hpp"

#include <mpi.h>

#include <exception>

#include "comm/mpi_backend.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/log/logger.hpp"

namespace lerobot::comm {

MpiEnvironment::MpiEnvironment() = default;
MpiEnvironment::MpiEnvironment(int& argc, char**& argv) : argc_(&argc), argv_(&argv) {}

MpiEnvironment::~MpiEnvironment() {
  if (!is_started_) return;
  if (std::uncaught_exceptions() > 0) {
    if (owns_mpi_) MPI_Abort(MPI_COMM_WORLD, 1);
    if (engine_) engine_->abandon();
  }
  world_.reset();
  engine_.reset();
  if (owns_mpi_) MPI_Finalize();
}

void MpiEnvironment::start() {
  if (is_started_) return;
  int was_initialized = 0;
  MPI_Initialized(&was_initialized);
  if (was_initialized == 0) {
    int provided = 0;
    MPI_Init_thread(argc_, argv_, MPI_THREAD_MULTIPLE, &provided);
    owns_mpi_ = true;
  }
  int level = 0;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED) {
    fail(ErrorKind::kComm,
         "mpi: this MPI library runs at thread level {}, expected MPI_THREAD_SERIALIZED ({}) or more. Use a build of "
         "MPI with thread support.",
         level, static_cast<int>(MPI_THREAD_SERIALIZED));
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);
  is_started_ = true;
}

int MpiEnvironment::rank() {
  start();
  return rank_;
}
int MpiEnvironment::world_size() {
  start();
  return world_size_;
}
int MpiEnvironment::local_rank() {
  start();
  return local_rank_;
}
int MpiEnvironment::local_size() {
  start();
  return local_size_;
}

ProcessGroupPtr MpiEnvironment::world(const CommOptions& options) {
  start();
  if (!world_) {
    CommOptions with_logger = options;
    if (with_logger.logger == nullptr) {
      logger_ = std::make_unique<log::Logger>(rank_);
      with_logger.logger = logger_.get();
    }
    engine_ = std::make_shared<Engine>(std::move(with_logger));
    world_ = make_cpu_group(c10::make_intrusive<MpiBackend>(engine_, engine_->world()), "world");
  }
  return world_;
}

void MpiEnvironment::abort(int code) {
  start();
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();  // MPI_Abort does not return
}

}  // namespace lerobot::comm
