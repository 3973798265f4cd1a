#include "lerobot/data/cores.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace lerobot::data {

Cores count_cores() {
  const auto machine = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {machine, machine};  // more cores than a cpu_set_t holds
  return {std::max(1, CPU_COUNT(&set)), machine};
}

int loader_threads(int num_workers, const Cores& cores) {
  return num_workers <= 0 ? 0 : std::max(1, std::min(num_workers, cores.usable));
}

std::optional<std::string> binding_warning(int num_workers, const Cores& cores) {
  const bool bound = cores.usable < cores.machine || cores.usable == 1;
  if (!bound || num_workers <= cores.usable) return std::nullopt;
  return fmt::format(
      "this rank may use {} core{} of {}, while {} loader threads were asked for: {} will run. mpirun binds each rank "
      "to a "
      "core by default; start it with --bind-to none (or --map-by slot:PE=<cores per rank>), or set --num_workers={}",
      cores.usable, cores.usable == 1 ? "" : "s", cores.machine, num_workers, loader_threads(num_workers, cores),
      cores.usable);
}

}  // namespace lerobot::data
