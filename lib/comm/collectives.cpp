#include "lerobot/comm/collectives.hpp"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <algorithm>

namespace lerobot::comm {
namespace {

c10d::Backend& backend_of(c10d::ProcessGroup& group, const at::Tensor& tensor) {
  return *group.getBackend(tensor.device().type());
}

WorkPtr reduce_all(c10d::ProcessGroup& group, const at::Tensor& tensor, const c10d::ReduceOp& op, bool is_async) {
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  options.asyncOp = is_async;
  std::vector<at::Tensor> tensors{tensor};
  return backend_of(group, tensor).allreduce(tensors, options);
}

WorkPtr gather_all(c10d::ProcessGroup& group, at::Tensor output, at::Tensor input, bool is_async) {
  c10d::AllgatherOptions options;
  options.asyncOp = is_async;
  return backend_of(group, input)._allgather_base(output, input, options);
}

WorkPtr scatter_reduced(c10d::ProcessGroup& group, at::Tensor output, at::Tensor input, const c10d::ReduceOp& op,
                        bool is_async) {
  c10d::ReduceScatterOptions options;
  options.reduceOp = op;
  options.asyncOp = is_async;
  return backend_of(group, input)._reduce_scatter_base(output, input, options);
}

}  // namespace

void all_reduce(c10d::ProcessGroup& group, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  reduce_all(group, tensor, op, false)->wait();
}
WorkPtr start_all_reduce(c10d::ProcessGroup& group, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  return reduce_all(group, tensor, op, true);
}

void all_gather(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input) {
  gather_all(group, output, input, false)->wait();
}
WorkPtr start_all_gather(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input) {
  return gather_all(group, output, input, true);
}

void reduce_scatter(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input,
                    const c10d::ReduceOp& op) {
  scatter_reduced(group, output, input, op, false)->wait();
}
WorkPtr start_reduce_scatter(c10d::ProcessGroup& group, const at::Tensor& output, const at::Tensor& input,
                             const c10d::ReduceOp& op) {
  return scatter_reduced(group, output, input, op, true);
}

void broadcast(c10d::ProcessGroup& group, const at::Tensor& tensor, int root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  options.asyncOp = false;
  std::vector<at::Tensor> tensors{tensor};
  backend_of(group, tensor).broadcast(tensors, options)->wait();
}

void barrier(c10d::ProcessGroup& group) {
  const auto devices = group.getDeviceTypes();
  const bool has_cpu = std::any_of(devices.begin(), devices.end(), [](const c10::Device& d) { return d.is_cpu(); });
  c10d::BarrierOptions options;
  options.asyncOp = false;
  // A group for both kinds of tensors meets on the CPU, where a missing rank gets a name.
  const auto backend = has_cpu ? group.getBackend(c10::DeviceType::CPU) : group.getDefaultBackend();
  backend->barrier(options)->wait();
}

}  // namespace lerobot::comm
