#pragma once

#include <torch/torch.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lerobot/nn/hooked.hpp"

// Small modules that stand for what policies are made of, and for what breaks sharding.
namespace lerobot::testing {

/// Pre-norm transformer layer. S sequence, B batch, D width.
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(std::int64_t width, std::int64_t hidden)
      : norm1_(register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        norm2_(register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        attention_(register_module("attention", torch::nn::MultiheadAttention(torch::nn::MultiheadAttentionOptions(width, 2)))),
        up_(register_module("up", torch::nn::Linear(width, hidden))),
        down_(register_module("down", torch::nn::Linear(hidden, width))) {}
  at::Tensor forward(const at::Tensor& x_SBD) {
    const at::Tensor h = norm1_(x_SBD);
    const at::Tensor y = x_SBD + std::get<0>(attention_(h, h, h));
    return y + down_(torch::gelu(up_(norm2_(y))));
  }
  torch::nn::Linear& up() { return up_; }

 private:
  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::MultiheadAttention attention_;
  torch::nn::Linear up_, down_;
};
LEROBOT_MODULE(Block);

/// Images and tokens to one sequence. Batch norm runs on its statistics.
class StemImpl : public torch::nn::Module {
 public:
  explicit StemImpl(std::int64_t width)
      : conv_(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, 3).stride(2)))),
        norm_(register_module("norm", torch::nn::BatchNorm2d(width))),
        embedding_(register_module("embedding", torch::nn::Embedding(11, width))) {
    norm_->eval();
  }
  at::Tensor forward(const at::Tensor& image, const at::Tensor& tokens) {
    const at::Tensor features = torch::relu(norm_(conv_(image))).flatten(2).permute({2, 0, 1});
    return torch::cat({features, embedding_(tokens)}, 0);
  }

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d norm_;
  torch::nn::Embedding embedding_;
};
LEROBOT_MODULE(Stem);

/// Gives a map, with a result that does not depend on the input among it.
class HeadImpl : public torch::nn::Module {
 public:
  explicit HeadImpl(std::int64_t width)
      : linear_(register_module("linear", torch::nn::Linear(width, 7))),
        prior_(register_parameter("prior", torch::randn({3, 5}))) {}
  std::map<std::string, at::Tensor> forward(at::Tensor x) {
    return {{"action", linear_(x)}, {"aux", prior_.pow(2).mean()}};
  }

 private:
  torch::nn::Linear linear_;
  at::Tensor prior_;
};
LEROBOT_MODULE(Head);

/// Embedding and output layer share one weight of five rows, under two names.
class TiedImpl : public torch::nn::Module {
 public:
  TiedImpl()
      : embedding_(register_module("embedding", torch::nn::Embedding(5, 4))),
        output_weight_(register_parameter("output_weight", embedding_->weight)) {}
  at::Tensor forward(const at::Tensor& tokens) { return torch::linear(embedding_(tokens), output_weight_); }

 private:
  torch::nn::Embedding embedding_;
  at::Tensor output_weight_;
};
LEROBOT_MODULE(Tied);

/// Parameters with 5, 4, 3 and 1 rows.
class UnevenImpl : public torch::nn::Module {
 public:
  UnevenImpl() {
    std::int64_t in = 4;
    for (const std::int64_t rows : {5, 4, 3, 1}) {
      layers_.push_back(register_module("rows" + std::to_string(rows), torch::nn::Linear(in, rows)));
      in = rows;
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (torch::nn::Linear& layer : layers_) x = torch::tanh(layer(x));
    return x;
  }

 private:
  std::vector<torch::nn::Linear> layers_;
};
LEROBOT_MODULE(Uneven);

struct NetOptions {
  std::int64_t width = 8;
  std::int64_t num_blocks = 3;
  bool frozen_part = false;  ///< the second block's `up` has no gradient
};

/// All of them, a block that is called twice, one that is called when told to, and parameters of the root's own.
class NetImpl : public torch::nn::Module {
 public:
  explicit NetImpl(const NetOptions& options)
      : stem_(register_module("stem", Stem(options.width))),
        blocks_(register_module("blocks", torch::nn::ModuleList())),
        twice_(register_module("twice", Block(options.width, 2 * options.width))),
        sometimes_(register_module("sometimes", Block(options.width, 2 * options.width))),
        head_(register_module("head", Head(options.width))),
        tied_(register_module("tied", Tied())),
        uneven_(register_module("uneven", Uneven())),
        position_(register_parameter("position", torch::randn({1, 1, options.width}) * 0.1)) {
    for (std::int64_t i = 0; i < options.num_blocks; ++i) blocks_->push_back(Block(options.width, 4 * options.width));
    if (options.frozen_part)
      for (at::Tensor& parameter : block(1)->up()->parameters()) parameter.set_requires_grad(false);
  }

  /// A loss.
  at::Tensor forward(const at::Tensor& image, const at::Tensor& tokens) {
    at::Tensor x = twice_(stem_(image, tokens) + position_);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(blocks_->size()); ++i) x = block(i)(x);
    x = twice_->forward(x);
    if (use_sometimes) x = sometimes_(x);
    std::map<std::string, at::Tensor> out = head_(x.mean(0));
    return out["action"].pow(2).mean() + 0.1 * out["aux"] + tied_(tokens.remainder(5)).pow(2).mean() +
           uneven_(x.mean(0).slice(1, 0, 4)).pow(2).mean();
  }

  Block block(std::int64_t i) { return Block(blocks_->ptr<nn::Hooked<BlockImpl, BlockTag>>(static_cast<std::size_t>(i))); }
  bool use_sometimes = false;

 private:
  Stem stem_;
  torch::nn::ModuleList blocks_;
  Block twice_, sometimes_;
  Head head_;
  Tied tied_;
  Uneven uneven_;
  at::Tensor position_;
};
LEROBOT_MODULE(Net);

/// Serialises what draws from the default generator: ranks that are threads share it.
inline std::mutex& generator_mutex() {
  static std::mutex mutex;
  return mutex;
}

inline Net make_net(const NetOptions& options = {}) {
  const std::lock_guard lock(generator_mutex());
  torch::manual_seed(5);
  return Net(options);
}

/// One rank's batch of one step.
inline std::pair<at::Tensor, at::Tensor> batch_of(int rank, std::int64_t step) {
  const std::lock_guard lock(generator_mutex());
  torch::manual_seed(1000 + rank * 37 + step);
  at::Tensor image = torch::randn({2, 3, 9, 9});
  return {image, torch::randint(0, 11, {3, 2})};
}

inline at::Tensor loss_of(Net& net, int rank, std::int64_t step) {
  const auto [image, tokens] = batch_of(rank, step);
  return net(image, tokens);
}

}  // namespace lerobot::testing
