#include "evaluate.hpp"

#include <torch/torch.h>

#include "lerobot/comm/comm.hpp"

namespace lerobot::train {

double held_out_loss(Run& run) {
  torch::NoGradGuard no_grad;
  run.policy->eval();
  data::EvalLoader loader(run.eval_set, run.eval_positions,
                          {.batch_size = run.config.batch_size,
                           .dp_rank = run.dp_rank(),
                           .dp_world = static_cast<int>(run.dp_world()),
                           .num_workers = static_cast<int>(run.config.num_workers),
                           .prefetch_factor = static_cast<int>(run.config.prefetch_factor)});
  at::Tensor sums = torch::zeros({2}, torch::kDouble);  // loss x weight, weight
  while (std::optional<data::EvalBatch> next = loader.next()) {
    const policies::PolicyOutput output = run.policy->forward(run.prepare(std::move(next->batch)));
    if (!next->counts) continue;
    const auto weight = output.weight.item<double>();
    sums[0] += output.loss.item<double>() * weight;
    sums[1] += weight;
  }
  comm::all_reduce(*run.context.world, sums);
  run.policy->train();
  return sums[0].item<double>() / sums[1].item<double>();
}

}  // namespace lerobot::train
