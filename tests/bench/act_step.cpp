// Milliseconds of a training forward and backward of ACT, and nanoseconds per element of dropout.
//   act_step [small|default] [dropout] [images] [bf16]      e.g.  OMP_NUM_THREADS=1 act_step small 0.1
#include <torch/torch.h>

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "lerobot/nn/dropout.hpp"
#include "lerobot/policies/act_policy.hpp"

namespace {

using namespace lerobot;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

policies::ACTConfig config(bool is_small, double dropout, bool images) {
  using processors::FeatureType;
  policies::ACTConfig c;
  c.input_features = {{"observation.state", FeatureType::kState, {2}}};
  if (images)
    c.input_features.push_back({"observation.image", FeatureType::kVisual, {3, 480, 640}});
  else
    c.input_features.push_back({"observation.environment_state", FeatureType::kEnv, {16}});
  c.output_features = {{"action", FeatureType::kAction, {2}}};
  c.dropout = dropout;
  if (is_small) {
    c.chunk_size = c.n_action_steps = 10;
    c.dim_model = 64;
    c.n_heads = 4;
    c.dim_feedforward = 128;
    c.n_encoder_layers = 2;
    c.n_vae_encoder_layers = 2;
  }
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_small = argc < 2 || std::string(argv[1]) == "small";
  const double dropout = argc < 3 ? 0.1 : std::atof(argv[2]);
  bool images = false, bf16 = false;
  for (int i = 3; i < argc; ++i) {
    images = images || std::string(argv[i]) == "images";
    bf16 = bf16 || std::string(argv[i]) == "bf16";
  }
  constexpr std::int64_t kBatch = 8;
  policies::ACTPolicy policy(config(is_small, dropout, images));
  policy->train();
  policies::Batch batch;
  const std::int64_t chunk = policy->config().chunk_size;
  batch.tensors = {{"observation.state", at::randn({kBatch, 2})},
                   {"action", at::randn({kBatch, chunk, 2})},
                   {"action_is_pad", at::zeros({kBatch, chunk}, at::kBool)}};
  if (images)
    batch.tensors["observation.image"] = at::randn({kBatch, 3, 480, 640});
  else
    batch.tensors["observation.environment_state"] = at::randn({kBatch, 16});

  const int steps = is_small ? 2000 : 12, warm_up = is_small ? 200 : 2;
  std::vector<double> forward, backward;
  const std::vector<at::Tensor> parameters = policy->parameters();
  for (int step = 0; step < warm_up + steps; ++step) {
    for (const at::Tensor& p : parameters) p.mutable_grad().reset();
    if (bf16) {
      at::autocast::set_autocast_enabled(at::kCPU, true);
      at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    }
    auto start = Clock::now();
    const policies::PolicyOutput output = policy->forward(batch);
    const double f = milliseconds_since(start);
    if (bf16) {
      at::autocast::clear_cache();
      at::autocast::set_autocast_enabled(at::kCPU, false);
    }
    start = Clock::now();
    output.loss.backward();
    if (step < warm_up) continue;
    forward.push_back(f);
    backward.push_back(milliseconds_since(start));
  }
  fmt::print("act {} dropout {}{}{}: forward {:.3f} ms, backward {:.3f} ms, together {:.3f} ms ({} threads)\n",
             is_small ? "small" : "default", dropout, images ? " images" : "", bf16 ? " bf16" : "", median(forward),
             median(backward), median(forward) + median(backward), at::get_num_threads());

  const at::Tensor x = at::randn({1 << 20});
  std::vector<double> own, stock;
  const torch::NoGradGuard no_grad;
  for (int i = 0; i < 50; ++i) {
    auto start = Clock::now();
    (void)nn::dropout(x, 0.1);
    own.push_back(milliseconds_since(start));
    start = Clock::now();
    (void)at::dropout(x, 0.1, true);
    stock.push_back(milliseconds_since(start));
  }
  const double per_element = 1e6 / static_cast<double>(x.numel());
  fmt::print("dropout: {:.3f} ns per element, at::dropout {:.3f}\n", median(own) * per_element,
             median(stock) * per_element);
  return 0;
}
