#include "memory.hpp"

#include <sys/resource.h>

namespace lerobot::train {

double peak_resident_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // Linux counts in kilobytes
}

}  // namespace lerobot::train
