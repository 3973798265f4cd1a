// Groups of a build without CUDA: CPU tensors only.
#include "comm/device_group.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::comm {

bool has_nccl() { return false; }

ProcessGroupPtr make_device_group(const ProcessGroupPtr& cpu_group, c10::Device device, double /*timeout_s*/) {
  if (!device.is_cpu() && cpu_group->getSize() > 1) {
    fail(ErrorKind::kConfig,
         "device: {} ranks on {} need NCCL, which this build does not have. Configure with -DLEROBOT_CUDA=ON, or use "
         "--policy.device=cpu.",
         cpu_group->getSize(), device.str());
  }
  return cpu_group;
}

void split_device_backend(c10d::ProcessGroup& /*group*/, c10d::ProcessGroup& /*part*/, int /*color*/,
                          const std::string& /*name*/) {}

}  // namespace lerobot::comm
