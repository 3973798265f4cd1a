#include "lerobot/comm/groups.hpp"

#include <ATen/core/Tensor.h>

#include "comm/device_group.hpp"
#include "comm/group_backend.hpp"
#include "comm/local.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::comm {
namespace {

class SingleRankBackend final : public GroupBackend {
 public:
  explicit SingleRankBackend(const std::string& name) : GroupBackend(0, 1, name) {}

  const std::string getBackendName() const override { return "single_rank"; }
  WorkPtr issue(Collective collective) override { return run_alone(std::move(collective), next_sequence()); }
  c10::intrusive_ptr<GroupBackend> split_by_color(int /*color*/, const std::string& name) override {
    return c10::make_intrusive<SingleRankBackend>(name);
  }
  [[noreturn]] void abort_job(int code) override {
    fail(ErrorKind::kComm, "a group of one rank aborts with code {}.", code);
  }
};

}  // namespace

ProcessGroupPtr split(const ProcessGroupPtr& group, int color, const std::string& name) {
  GroupBackend* const backend = find_group_backend(*group);
  if (backend == nullptr) {
    fail(ErrorKind::kComm,
         "split: group \"{}\" (backend {}) was not made by this library, so it can't be split into \"{}\". Make the "
         "sub-groups yourself and pass them to DeviceMesh.",
         group->getGroupName(), group->getBackendName(), name);
  }
  auto part = make_cpu_group(backend->split_by_color(color, name), name);
  split_device_backend(*group, *part, color, name);
  return part;
}

ProcessGroupPtr single_rank_group(const std::string& name) {
  return make_cpu_group(c10::make_intrusive<SingleRankBackend>(name), name);
}

void set_step(c10d::ProcessGroup& group, std::int64_t step) {
  if (GroupBackend* const backend = find_group_backend(group)) backend->set_step(step);
}

void abort_job(c10d::ProcessGroup& group, int code) {
  if (GroupBackend* const backend = find_group_backend(group)) backend->abort_job(code);
  group.abort();
  fail(ErrorKind::kComm, "group \"{}\" aborts with code {}.", group.getGroupName(), code);
}

PatientPhase::PatientPhase(ProcessGroupPtr group, const std::string& name, double timeout_s)
    : group_(std::move(group)) {
  if (GroupBackend* const backend = find_group_backend(*group_)) backend->enter_phase(name, timeout_s);
}

PatientPhase::~PatientPhase() {
  if (GroupBackend* const backend = find_group_backend(*group_)) backend->leave_phase();
}

}  // namespace lerobot::comm
