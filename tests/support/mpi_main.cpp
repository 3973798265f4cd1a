#define CATCH_CONFIG_NO_POSIX_SIGNALS
#define CATCH_CONFIG_RUNNER
#include <mpi.h>

#include <catch2/catch.hpp>
#include <cstdio>

namespace {

// A rank that fails leaves its peers waiting in a collective: stop the whole job at once.
struct AbortJobOnFailure : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.failed == 0) return;
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
};
CATCH_REGISTER_LISTENER(AbortJobOnFailure)

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int failures = Catch::Session().run(argc, argv);
  MPI_Finalize();
  return failures;
}
