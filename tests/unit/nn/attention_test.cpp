#include <torch/torch.h>

#include <ATen/autocast_mode.h>
#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"
#include "lerobot/nn/dropout.hpp"
#include "lerobot/nn/feed_forward.hpp"
#include "lerobot/nn/multihead_attention.hpp"

namespace {

using namespace lerobot::nn;
using Tensors = std::vector<at::Tensor>;

double error_of(const at::Tensor& got, const at::Tensor& want) {
  const double scale = std::max(1e-12, want.abs().max().item<double>());
  return (got.to(at::kDouble) - want.to(at::kDouble)).abs().max().item<double>() / scale;
}

struct Case {
  std::int64_t batch, queries, keys, dim, heads;
  bool masked, is_self, has_x_pos, has_memory_pos, one_query;
  double dropout;
};

/// Attention by its definition, in double. `kept` [B, H, Q, K] is the dropout mask with its scale.
at::Tensor reference(const Case& c, const Tensors& p, const at::Tensor& x, const at::Tensor& memory,
                     const at::Tensor& x_pos, const at::Tensor& memory_pos, const at::Tensor& padding,
                     const at::Tensor& kept) {
  const auto part = [&](const at::Tensor& input, std::int64_t i) {
    const at::Tensor y = torch::linear(input, p[0].narrow(0, i * c.dim, c.dim), p[1].narrow(0, i * c.dim, c.dim));
    return y.expand({c.batch, -1, -1}).unflatten(2, {c.heads, -1}).transpose(1, 2);
  };
  const at::Tensor query = x_pos.defined() ? x + x_pos : x, key = memory_pos.defined() ? memory + memory_pos : memory;
  at::Tensor scores =
      part(query, 0).matmul(part(key, 1).transpose(2, 3)) / std::sqrt(static_cast<double>(c.dim / c.heads));
  if (padding.defined()) scores = scores.masked_fill(padding.unsqueeze(1).unsqueeze(1), -INFINITY);
  const at::Tensor context = (scores.softmax(-1) * kept).matmul(part(memory, 2));
  return torch::linear(context.transpose(1, 2).flatten(2), p[2], p[3]);
}

}  // namespace

TEST_CASE("MultiheadAttention: output and gradients are those of the definition", "[attention]") {
  const std::vector<Case> cases{
      {3, 12, 12, 32, 4, true, true, true, true, false, 0.0},
      {3, 12, 12, 32, 4, true, true, true, true, false, 0.3},
      {2, 1, 12, 32, 4, true, false, true, true, false, 0.3},
      {2, 5, 3, 48, 3, false, false, true, false, false, 0.0},
      {2, 5, 5, 48, 3, false, true, false, false, false, 0.2},
      {3, 10, 7, 32, 2, false, false, true, true, true, 0.0},
      {2, 4, 6, 32, 2, false, false, false, false, false, 0.1},
      {2, 90, 90, 64, 2, true, true, true, true, false, 0.0},
      {2, 90, 90, 64, 2, true, true, true, true, false, 0.25},
      {2, 9, 90, 64, 2, false, false, true, true, true, 0.0},
      {1, 70, 70, 160, 2, false, true, false, false, false, 0.1},
      {2, 20, 20, 160, 2, true, true, true, true, false, 0.0},
  };
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const Case& c = cases[index];
    INFO("case " << index);
    at::manual_seed(20 + index);
    MultiheadAttention module(
        MultiheadAttentionOptions{.embed_dim = c.dim, .num_heads = c.heads, .dropout = c.dropout});
    {
      const torch::NoGradGuard no_grad;
      module->in_proj_bias.normal_();
      module->out_proj->bias.normal_();
    }
    const at::Tensor memory = at::randn({c.batch, c.keys, c.dim}).requires_grad_();
    const at::Tensor x = c.is_self ? memory : at::randn({c.one_query ? 1 : c.batch, c.queries, c.dim}).requires_grad_();
    at::Tensor memory_pos, x_pos, padding;
    if (c.has_memory_pos) memory_pos = at::randn({c.keys, c.dim}).requires_grad_();
    if (c.has_x_pos) x_pos = c.is_self ? memory_pos : at::randn({c.queries, c.dim}).requires_grad_();
    if (c.masked) {
      padding = at::rand({c.batch, c.keys}) < 0.4;
      padding.select(1, 0).fill_(false);
    }
    const at::Tensor weight = at::randn({c.batch, c.queries, c.dim});
    at::manual_seed(77);
    const at::Tensor out =
        module(x, memory, x_pos, memory_pos, padding.defined() ? std::optional(padding) : std::nullopt);
    (out * weight).sum().backward();

    at::manual_seed(77);
    const at::Tensor kept = dropout(at::ones({c.batch, c.heads, c.queries, c.keys}), c.dropout).to(at::kDouble);
    const auto exact_copy = [](const at::Tensor& t) {
      return t.defined() ? t.detach().to(at::kDouble).requires_grad_() : at::Tensor();
    };
    Tensors own = module->parameters(), exact;
    for (const at::Tensor& parameter : own) exact.push_back(exact_copy(parameter));
    const at::Tensor m = exact_copy(memory), mp = exact_copy(memory_pos);
    const at::Tensor q = c.is_self ? m : exact_copy(x), qp = c.is_self ? mp : exact_copy(x_pos);
    const at::Tensor want = reference(c, exact, q, m, qp, mp, padding, kept);
    (want * weight.to(at::kDouble)).sum().backward();

    CHECK(error_of(out.detach(), want.detach()) < 2e-6);
    own.insert(own.end(), {x, memory, x_pos, memory_pos});
    exact.insert(exact.end(), {q, m, qp, mp});
    for (std::size_t i = 0; i < own.size(); ++i) {
      INFO("tensor " << i);
      if (own[i].defined()) CHECK(error_of(own[i].grad(), exact[i].grad()) < 1e-5);
    }
  }
}

TEST_CASE("MultiheadAttention: one value for all keys gives its projection", "[attention]") {
  at::manual_seed(1);
  MultiheadAttention module(MultiheadAttentionOptions{.embed_dim = 16, .num_heads = 2, .dropout = 0.0});
  const at::Tensor row = at::randn({1, 16});
  const at::Tensor value = row.expand({2, 5, 16});
  const at::Tensor out = module(at::randn({2, 4, 16}), value, at::Tensor(), at::randn({5, 16}), std::nullopt);
  CHECK(error_of(out.detach(), module->forward_of_one_value(row).detach().expand({2, 4, 16})) < 1e-6);
}

TEST_CASE("MultiheadAttention: bf16 autocast runs forward and backward, also with a padding mask", "[attention]") {
  for (const std::int64_t length : {12, 90}) {
    for (const double p : {0.0, 0.2}) {
      INFO(length << " tokens, dropout " << p);
      at::manual_seed(1);
      MultiheadAttention module(MultiheadAttentionOptions{.embed_dim = 32, .num_heads = 4, .dropout = p});
      const at::Tensor x = at::randn({2, length, 32}).requires_grad_();
      at::Tensor padding = at::zeros({2, length}, at::kBool);
      padding.narrow(1, length - 3, 3).fill_(true);
      at::manual_seed(5);
      const at::Tensor exact = module(x, x, at::Tensor(), at::Tensor(), padding);
      exact.square().mean().backward();
      const at::Tensor gradient = module->in_proj_weight.grad().clone();
      module->zero_grad();
      at::autocast::set_autocast_enabled(at::kCPU, true);
      at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
      at::manual_seed(5);
      const at::Tensor out = module(x, x, at::Tensor(), at::Tensor(), padding);
      at::autocast::clear_cache();
      at::autocast::set_autocast_enabled(at::kCPU, false);
      CHECK(out.scalar_type() == at::kBFloat16);
      CHECK(error_of(out.detach(), exact.detach()) < 3e-2);
      out.to(at::kFloat).square().mean().backward();
      CHECK(module->in_proj_weight.grad().scalar_type() == at::kFloat);
      CHECK(error_of(module->in_proj_weight.grad(), gradient) < 5e-2);
    }
  }
}

TEST_CASE("MultiheadAttention: other types take torch's own path", "[attention]") {
  at::manual_seed(1);
  MultiheadAttention module(MultiheadAttentionOptions{.embed_dim = 16, .num_heads = 2, .dropout = 0.0});
  const at::Tensor query = at::randn({1, 3, 16}), key = at::randn({2, 5, 16}), pos = at::randn({5, 16});
  const at::Tensor padding = torch::tensor({{false, true, false, false, true}, {false, false, false, false, true}});
  const at::Tensor single = module(query, key, at::Tensor(), pos, padding);
  module->to(at::kDouble);
  const at::Tensor twice =
      module(query.to(at::kDouble), key.to(at::kDouble), at::Tensor(), pos.to(at::kDouble), padding);
  CHECK(error_of(single.detach(), twice.detach()) < 1e-6);
}

TEST_CASE("MultiheadAttention: a second backward and a gradient of a gradient are refused", "[attention]") {
  MultiheadAttention module(MultiheadAttentionOptions{.embed_dim = 8, .num_heads = 2, .dropout = 0.0});
  const at::Tensor x = at::randn({1, 3, 8}).requires_grad_();
  const at::Tensor loss = module(x, x, at::Tensor(), at::Tensor(), std::nullopt).square().sum();
  CHECK_THROWS_WITH(torch::autograd::grad({loss}, {x}, {}, true, true), Catch::Contains("create_graph"));
  const at::Tensor again = module(x, x, at::Tensor(), at::Tensor(), std::nullopt).sum();
  again.backward();
  CHECK_THROWS_WITH(again.backward(), Catch::Contains("second time"));
}

TEST_CASE("MultiheadAttention: heads that do not divide the width are refused", "[attention]") {
  CHECK_THROWS_WITH(MultiheadAttention(MultiheadAttentionOptions{.embed_dim = 10, .num_heads = 4}),
                    Catch::Contains("10") && Catch::Contains("4 heads"));
}

TEST_CASE("feed_forward and add_dropout_norm: output and gradients are those of the definition", "[attention]") {
  for (const double p : {0.0, 0.3}) {
    for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
      INFO("dropout " << p << ", activation " << static_cast<int>(activation));
      at::manual_seed(3);
      Linear linear1(16, 24), linear2(24, 16);
      LayerNorm norm(torch::nn::LayerNormOptions({16}));
      {
        const torch::NoGradGuard no_grad;
        norm->weight.normal_();
        norm->bias.normal_();
      }
      const at::Tensor x = at::randn({3, 5, 16}).requires_grad_(), weight = at::randn({3, 5, 16});
      at::manual_seed(6);
      const at::Tensor out = add_dropout_norm(x, feed_forward(x, linear1, linear2, activation, p), p, norm);
      (out * weight).sum().backward();

      at::manual_seed(6);
      const at::Tensor kept1 = dropout(at::ones({3, 5, 24}), p).to(at::kDouble);
      const at::Tensor kept2 = dropout(at::ones({3, 5, 16}), p).to(at::kDouble);
      Tensors own = linear1->parameters();
      for (const at::Tensor& t : linear2->parameters()) own.push_back(t);
      for (const at::Tensor& t : norm->parameters()) own.push_back(t);
      own.push_back(x);
      Tensors exact;
      for (const at::Tensor& t : own) exact.push_back(t.detach().to(at::kDouble).requires_grad_());
      at::Tensor hidden = torch::linear(exact[6], exact[0], exact[1]);
      hidden = (activation == Activation::kRelu ? hidden.relu() : torch::gelu(hidden)) * kept1;
      const at::Tensor sum = exact[6] + torch::linear(hidden, exact[2], exact[3]) * kept2;
      const at::Tensor want = torch::layer_norm(sum, {16}, exact[4], exact[5]);
      (want * weight.to(at::kDouble)).sum().backward();
      CHECK(error_of(out.detach(), want.detach()) < 2e-6);
      for (std::size_t i = 0; i < own.size(); ++i) {
        INFO("tensor " << i);
        CHECK(error_of(own[i].grad(), exact[i].grad()) < 1e-5);
      }
    }
  }
}

namespace {

/// Counts the calls of a module that it is attached to.
struct CountingHook final : Hook {
  int calls = 0;
  void around(Call& call) override {
    ++calls;
    call.run();
  }
};

}  // namespace

TEST_CASE("feed_forward and attention: hooks of their layers run", "[attention]") {
  at::manual_seed(3);
  Linear linear1(8, 12), linear2(12, 8);
  LayerNorm norm(torch::nn::LayerNormOptions({8}));
  MultiheadAttention attention(MultiheadAttentionOptions{.embed_dim = 8, .num_heads = 2, .dropout = 0.0});
  const at::Tensor x = at::randn({2, 3, 8});
  const auto run = [&] {
    const at::Tensor y = attention(x, x, at::Tensor(), at::Tensor(), std::nullopt);
    return add_dropout_norm(y, feed_forward(y, linear1, linear2, Activation::kRelu, 0.0), 0.0, norm);
  };
  const at::Tensor plain = run();
  const auto hook = std::make_shared<CountingHook>();
  linear1->attach(HookLayer::kAdapter, hook);
  linear2->attach(HookLayer::kAdapter, hook);
  norm->attach(HookLayer::kUnit, hook);
  attention->out_proj->attach(HookLayer::kAdapter, hook);
  CHECK(error_of(run().detach(), plain.detach()) < 1e-6);
  CHECK(hook->calls == 4);
}
