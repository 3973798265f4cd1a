#include <torch/torch.h>

#include <array>
#include <utility>

#include "checkpoint/tensor_file.hpp"
#include "lerobot/checkpoint/rng_state.hpp"
#include "lerobot/comm/collectives.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::checkpoint {

namespace {

constexpr std::array kMembers{
    std::pair{"torch_rng_state", &TorchRngStates::cpu},
    std::pair{"torch_cuda_rng_state", &TorchRngStates::cuda},
    std::pair{"window_start_torch_rng_state", &TorchRngStates::window_start_cpu},
    std::pair{"window_start_torch_cuda_rng_state", &TorchRngStates::window_start_cuda},
};

}  // namespace

TorchRngStates gather_torch_rng(const TorchRngStates& own, const comm::ProcessGroupPtr& world) {
  TorchRngStates out;
  for (const auto& [name, member] : kMembers) {
    const at::Tensor& state = own.*member;
    if (!state.defined()) continue;
    at::Tensor all = state.unsqueeze(0);
    if (world) {
      all = at::empty({world->getSize(), state.numel()}, at::kByte);
      comm::all_gather(*world, all, state.contiguous());
    }
    if (!world || world->getRank() == 0) out.*member = all;
  }
  return out;
}

std::optional<TorchRngStates> read_rank_rng_states(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const TensorFile file(path);
  TorchRngStates out;
  for (const auto& [name, member] : kMembers) {
    if (!file.has(name)) continue;
    out.*member = file.read(name);
    if ((out.*member).dim() != 2 || (out.*member).scalar_type() != at::kByte)
      fail(ErrorKind::kCheckpoint, "{}: \"{}\" has {} dimensions of {}, expected bytes [ranks, state].", path.string(),
           name, (out.*member).dim(), c10::toString((out.*member).scalar_type()));
  }
  if (!out.cpu.defined())
    fail(ErrorKind::kCheckpoint, "{}: there is no tensor \"{}\".", path.string(), kMembers.front().first);
  return out;
}

void write_rank_rng_states(const std::filesystem::path& path, const TorchRngStates& states) {
  NamedTensors tensors;
  for (const auto& [name, member] : kMembers)
    if ((states.*member).defined()) tensors.emplace_back(name, states.*member);
  write_tensor_file(path, tensors);
}

}  // namespace lerobot::checkpoint
