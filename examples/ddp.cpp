// The same model on every rank, gradients averaged in backward.
//
//   mpirun -n 2 build/release/bin/examples/ddp tests/data/datasets/pusht_mini_state
//
// The last line, from rank 0, says: ranks agree
#include <torch/torch.h>

#include <cstdio>

#include "lerobot/comm/comm.hpp"
#include "lerobot/ddp/ddp.hpp"
#include "lerobot/nn/hooked.hpp"
#include "lerobot/nn/layers.hpp"

using namespace lerobot;

namespace {

class NetImpl : public torch::nn::Module {
 public:
  NetImpl() {
    first_ = register_module("first", nn::Linear(8, 32));
    second_ = register_module("second", nn::Linear(32, 2));
  }
  at::Tensor forward(const at::Tensor& x) { return second_(torch::relu(first_(x))); }

 private:
  nn::Linear first_{nullptr}, second_{nullptr};
};
LEROBOT_MODULE(Net);

}  // namespace

int main(int argc, char** argv) {
  comm::MpiEnvironment mpi(argc, argv);
  const comm::ProcessGroupPtr world = mpi.world();
  Net net;
  ddp::Replicated replicated = ddp::replicate(net.ptr(), world);
  torch::optim::SGD sgd(net->parameters(), 0.05);

  torch::manual_seed(static_cast<std::uint64_t>(mpi.rank()));  // every rank has its own data
  for (int step = 0; step < 20; ++step) {
    const at::Tensor x = torch::randn({16, 8});
    sgd.zero_grad();
    torch::mse_loss(net(x), x.narrow(1, 0, 2)).backward();
    sgd.step();
  }

  at::Tensor highest = net->parameters()[0].detach().clone(), lowest = highest.clone();
  comm::all_reduce(*world, highest, c10d::ReduceOp::MAX);
  comm::all_reduce(*world, lowest, c10d::ReduceOp::MIN);
  const bool agree = highest.equal(lowest);
  if (mpi.rank() == 0) std::printf("%s\n", agree ? "ranks agree" : "ranks differ");
  return agree ? 0 : 1;
}
