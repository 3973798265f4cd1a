#pragma once

#include <optional>
#include <string>

namespace lerobot::data {

/// Cores that this process may run on, and those of the machine.
struct Cores {
  int usable = 1, machine = 1;
};

/// Asks the operating system (sched_getaffinity): a launcher may have bound the process to fewer cores.
[[nodiscard]] Cores count_cores();

/// Loader threads that are started for `num_workers`: never more than usable cores, at least one unless 0 are asked.
[[nodiscard]] int loader_threads(int num_workers, const Cores& cores);

/// What to say when a launcher's binding leaves fewer cores than loader threads asked for; nothing when it does not.
[[nodiscard]] std::optional<std::string> binding_warning(int num_workers, const Cores& cores);

}  // namespace lerobot::data
