#include "nn/attention_node.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "lerobot/core/error.hpp"
#include "lerobot/nn/fused_node.hpp"
#include "nn/compute_type.hpp"
#include "nn/cpu_parts.hpp"
#include "nn/dropout_key.hpp"
#include "nn/parallel.hpp"

// B batch, Q queries, K keys, D embed_dim, H heads, E = D / H.
namespace lerobot::nn {
namespace {

using torch::autograd::variable_list;

/// The shape of one call, and the way its core is computed.
struct Plan {
  std::int64_t batch = 0, query_batch = 0, queries = 0, keys = 0, dim = 0, heads = 1;
  at::ScalarType type = at::kFloat;
  cpu::DropoutMask mask;
  bool has_x_pos = false, has_memory_pos = false;
  bool query_is_key = false;  ///< self-attention: x is the memory, with the same positions
  /// Rows [0, 3 D) of the input projection in up to three groups, one per distinct input: group g has parts
  /// [group_begin[g], group_begin[g + 1]) of q, k, v.
  std::array<std::int64_t, 4> group_begin{};
  std::size_t num_groups = 0;
  bool has_mask = false;
  bool has_out_proj = false;

  [[nodiscard]] std::int64_t head_dim() const { return dim / heads; }
  [[nodiscard]] float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim()))); }
  [[nodiscard]] bool is_short() const {
    return type == at::kFloat && keys <= cpu::kMaxShortKeys && head_dim() <= cpu::kMaxShortHeadDim;
  }
  [[nodiscard]] bool drops() const { return mask.threshold != 0; }
};

/// q, k and v as columns of the groups' buffers [rows, width].
using Parts = std::array<at::Tensor, 3>;

Parts parts_of(const Plan& plan, const std::array<at::Tensor, 3>& groups) {
  Parts parts;
  for (std::size_t g = 0; g < plan.num_groups; ++g)
    for (std::int64_t part = plan.group_begin[g]; part < plan.group_begin[g + 1]; ++part)
      parts[static_cast<std::size_t>(part)] = groups[g].narrow(1, (part - plan.group_begin[g]) * plan.dim, plan.dim);
  return parts;
}

/// [rows, D] -> [B, H, S, E], a view.
at::Tensor heads_of(const Plan& plan, const at::Tensor& part, std::int64_t batch) {
  const std::int64_t rows = part.size(0) / batch;
  return part.unflatten(0, {batch, rows}).unflatten(2, {plan.heads, plan.head_dim()}).transpose(1, 2);
}

cpu::Rows rows_of(const at::Tensor& part, std::int64_t first_row, std::int64_t column) {
  const std::int64_t stride = part.stride(0);
  return {part.mutable_data_ptr<float>() + first_row * stride + column, stride};
}

cpu::AttentionHead head_of(const Plan& plan, const at::Tensor& key_mask, std::int64_t index) {
  const std::int64_t sample = index / plan.heads;
  return {.num_queries = plan.queries,
          .num_keys = plan.keys,
          .head_dim = plan.head_dim(),
          .scale = plan.scale(),
          .key_is_masked = plan.has_mask ? key_mask.const_data_ptr<bool>() + sample * plan.keys : nullptr,
          .mask = plan.mask,
          .mask_begin = index * plan.queries * plan.keys};
}

/// Heads are split over threads from about 64k multiply-adds.
std::int64_t heads_per_thread(const Plan& plan) {
  return std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(1, plan.queries * plan.keys * plan.head_dim()));
}

struct Core {
  at::Tensor context;  ///< [B * Q, D]
  at::Tensor weights;  ///< before dropout: [B * H, Q, K]; undefined where flash attention ran
  at::Tensor flash_out, logsumexp;
};

/// The mask as flash attention takes it: 0 or -inf [B, 1, Q, K], a view of [B, K].
std::optional<at::Tensor> additive_mask(const Plan& plan, const at::Tensor& key_mask) {
  if (!plan.has_mask) return std::nullopt;
  const at::Tensor bias = at::zeros({plan.batch, plan.keys}, at::TensorOptions(plan.type))
                              .masked_fill_(key_mask, -std::numeric_limits<double>::infinity());
  return bias.view({plan.batch, 1, 1, plan.keys}).expand({plan.batch, plan.heads, plan.queries, plan.keys});
}

Core core_forward(const Plan& plan, const Parts& parts, const at::Tensor& key_mask) {
  Core core;
  const auto options = at::TensorOptions(plan.type);
  if (plan.is_short()) {
    core.context = at::empty({plan.batch * plan.queries, plan.dim}, options);
    core.weights = at::empty({plan.batch * plan.heads, plan.queries, plan.keys}, options);
    auto* weights = core.weights.mutable_data_ptr<float>();
    parallel_for(plan.batch * plan.heads, heads_per_thread(plan), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t sample = i / plan.heads, column = (i % plan.heads) * plan.head_dim();
        const std::int64_t query_row = plan.query_batch == 1 ? 0 : sample * plan.queries;
        cpu::short_attention(head_of(plan, key_mask, i), rows_of(parts[0], query_row, column),
                             rows_of(parts[1], sample * plan.keys, column),
                             rows_of(parts[2], sample * plan.keys, column), weights + i * plan.queries * plan.keys,
                             rows_of(core.context, sample * plan.queries, column));
      }
    });
    return core;
  }
  at::Tensor q_BHQE = heads_of(plan, parts[0], plan.query_batch).expand({plan.batch, -1, -1, -1});
  const at::Tensor k_BHKE = heads_of(plan, parts[1], plan.batch), v_BHKE = heads_of(plan, parts[2], plan.batch);
  at::Tensor out_BHQE;
  if (!plan.drops()) {
    std::tie(out_BHQE, core.logsumexp) = at::_scaled_dot_product_flash_attention_for_cpu(
        q_BHQE, k_BHKE, v_BHKE, 0.0, false, additive_mask(plan, key_mask));
    core.flash_out = out_BHQE;
  } else {
    const auto flat = [&](const at::Tensor& x) { return x.reshape({plan.batch * plan.heads, -1, plan.head_dim()}); };
    core.weights = at::bmm(flat(q_BHQE), flat(k_BHKE).transpose(1, 2));
    masked_softmax_(core.weights, plan.scale(), plan.has_mask ? key_mask : at::Tensor(), plan.heads);
    out_BHQE = at::bmm(apply_mask(plan.mask, core.weights), flat(v_BHKE))
                   .view({plan.batch, plan.heads, plan.queries, plan.head_dim()});
  }
  core.context = out_BHQE.transpose(1, 2).reshape({plan.batch * plan.queries, plan.dim});
  return core;
}

/// Gradients of q [B * Q, D], k and v into `grads`.
void core_backward(const Plan& plan, const Parts& parts, const at::Tensor& key_mask, const Core& core,
                   const at::Tensor& grad_context, const Parts& grads) {
  if (plan.is_short()) {
    const auto* weights = core.weights.const_data_ptr<float>();
    parallel_for(plan.batch * plan.heads, heads_per_thread(plan), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t sample = i / plan.heads, column = (i % plan.heads) * plan.head_dim();
        const std::int64_t query_row = plan.query_batch == 1 ? 0 : sample * plan.queries;
        const std::int64_t key_row = sample * plan.keys;
        cpu::short_attention_backward(
            head_of(plan, key_mask, i), rows_of(parts[0], query_row, column), rows_of(parts[1], key_row, column),
            rows_of(parts[2], key_row, column), weights + i * plan.queries * plan.keys,
            rows_of(grad_context, sample * plan.queries, column), rows_of(grads[0], sample * plan.queries, column),
            rows_of(grads[1], key_row, column), rows_of(grads[2], key_row, column));
      }
    });
    return;
  }
  const at::Tensor grad_BHQE = heads_of(plan, grad_context, plan.batch);
  const at::Tensor q_BHQE = heads_of(plan, parts[0], plan.query_batch).expand({plan.batch, -1, -1, -1});
  const at::Tensor k_BHKE = heads_of(plan, parts[1], plan.batch), v_BHKE = heads_of(plan, parts[2], plan.batch);
  at::Tensor gq, gk, gv;
  if (!plan.drops()) {
    std::tie(gq, gk, gv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        grad_BHQE, q_BHQE, k_BHKE, v_BHKE, core.flash_out, core.logsumexp, 0.0, false, additive_mask(plan, key_mask));
  } else {
    const auto flat = [&](const at::Tensor& x) { return x.reshape({plan.batch * plan.heads, -1, plan.head_dim()}); };
    const auto heads = [&](const at::Tensor& x) { return x.unflatten(0, {plan.batch, plan.heads}); };
    const at::Tensor grad = flat(grad_BHQE);
    gv = heads(at::bmm(apply_mask(plan.mask, core.weights).transpose(1, 2), grad));
    at::Tensor grad_scores = apply_mask(plan.mask, at::bmm(grad, flat(v_BHKE).transpose(1, 2)));
    softmax_backward_(grad_scores, core.weights, plan.scale());
    gq = heads(at::bmm(grad_scores, flat(k_BHKE)));
    gk = heads(at::bmm(grad_scores.transpose(1, 2), flat(q_BHQE)));
  }
  heads_of(plan, grads[0], plan.batch).copy_(gq);
  heads_of(plan, grads[1], plan.batch).copy_(gk);
  heads_of(plan, grads[2], plan.batch).copy_(gv);
}

/// The distinct inputs of the projection, one per group, as matrices [rows, D] of the computing type.
using Sources = std::array<at::Tensor, 3>;

struct AttentionNode final : FusedNode {
  Plan plan;
  Core core;
  Sources sources, projected;

  std::string name() const override { return "LerobotAttention"; }
  void release_variables() override {
    FusedNode::release_variables();
    core = {};
    sources = {};
    projected = {};
  }

  // Inputs: x, memory, x_pos, memory_pos, in_weight, in_bias, out_weight, out_bias. Saved: in_weight, out_weight, mask.
  variable_list backward(const at::Tensor& grad_output) override {
    if (!core.context.defined()) TORCH_CHECK(false, torch::autograd::ERR_BACKWARD_TWICE);
    const at::Tensor grad = grad_output.to(plan.type).reshape({plan.batch * plan.queries, plan.dim});
    variable_list result(8);
    at::Tensor grad_context = grad;
    if (plan.has_out_proj) {
      if (task_should_compute_output(6)) result[6] = at::mm(grad.t(), core.context);
      if (task_should_compute_output(7)) result[7] = column_sums(grad);
      grad_context = at::mm(grad, saved(1).to(plan.type));
    }
    const auto options = at::TensorOptions(plan.type);
    Sources grad_groups;
    for (std::size_t g = 0; g < plan.num_groups; ++g) {
      const std::int64_t rows = plan.batch * (plan.group_begin[g] == 0 ? plan.queries : plan.keys);
      grad_groups[g] = at::empty({rows, (plan.group_begin[g + 1] - plan.group_begin[g]) * plan.dim}, options);
    }
    core_backward(plan, parts_of(plan, projected), saved(2), core, grad_context.contiguous(),
                  parts_of(plan, grad_groups));
    // A query that holds for the whole batch gets the sum over it; it never shares a group with the keys then.
    if (plan.query_batch != plan.batch)
      grad_groups[0] = grad_groups[0].view({plan.batch, plan.queries, plan.dim}).sum(0);

    const at::Tensor weight = saved(0).to(plan.type);
    const bool wants_weight = task_should_compute_output(4), wants_bias = task_should_compute_output(5);
    if (wants_weight) result[4] = at::empty(weight.sizes(), options);
    if (wants_bias) result[5] = at::empty({3 * plan.dim}, options);
    for (std::size_t g = 0; g < plan.num_groups; ++g) {
      const std::int64_t row = plan.group_begin[g] * plan.dim, rows = grad_groups[g].size(1);
      if (wants_weight) {
        at::Tensor slice = result[4].narrow(0, row, rows);
        at::mm_out(slice, grad_groups[g].t(), sources[g]);
      }
      if (wants_bias) column_sums_into(grad_groups[g], result[5].narrow(0, row, rows));
      add_input_gradient(g, grad_groups[g], weight.narrow(0, row, rows), result);
    }
    return result;
  }

 private:
  /// The part of group `g` in the gradients of x, memory and their positions. Self-attention has all of it in x.
  void add_input_gradient(std::size_t g, const at::Tensor& grad, const at::Tensor& weight, variable_list& result) {
    const bool is_query = g == 0;
    const std::size_t target = is_query || plan.query_is_key ? 0 : 1;
    const bool has_pos = is_query ? plan.has_x_pos : plan.has_memory_pos && plan.group_begin[g] == 1;
    const bool wants_pos = has_pos && task_should_compute_output(target + 2);
    const bool wants_input = task_should_compute_output(target);
    if (!wants_pos && !wants_input) return;
    const std::vector<std::int64_t> shape{is_query ? plan.query_batch : plan.batch, is_query ? plan.queries : plan.keys,
                                          plan.dim};
    at::Tensor& sum = result[target];
    if (sum.defined()) {
      sum.view({-1, plan.dim}).addmm_(grad, weight);
      return;  // only the value follows another group on the same input, and it has no position
    }
    at::Tensor part = at::mm(grad, weight).view(shape);
    if (wants_pos) result[target + 2] = part.sum(0);
    if (wants_input) sum = std::move(part);
  }
};

Plan plan_of(const AttentionTensors& t, const AttentionSettings& settings) {
  Plan plan;
  plan.batch = t.memory.size(0);
  plan.query_batch = t.x.size(0);
  plan.queries = t.x.size(1);
  plan.keys = t.memory.size(1);
  plan.dim = t.memory.size(2);
  plan.heads = settings.num_heads;
  plan.type = compute_type(t.x);
  if (plan.query_batch != plan.batch && plan.query_batch != 1)
    fail(ErrorKind::kInternal, "attention: x has batch {}, the memory {}; expected the same or 1.", plan.query_batch,
         plan.batch);
  plan.has_x_pos = t.x_pos.defined();
  plan.has_memory_pos = t.memory_pos.defined();
  plan.query_is_key = t.x.is_same(t.memory) && t.x_pos.is_same(t.memory_pos);
  plan.group_begin[plan.num_groups++] = 0;
  if (!plan.query_is_key) plan.group_begin[plan.num_groups++] = 1;
  if (plan.has_memory_pos) plan.group_begin[plan.num_groups++] = 2;
  plan.group_begin[plan.num_groups] = 3;
  plan.has_mask = t.key_padding_mask.defined();
  plan.has_out_proj = t.out_weight.defined();
  plan.mask = draw_mask(settings.dropout);
  return plan;
}

}  // namespace

bool attention_node_applies(const at::Tensor& x, const at::Tensor& memory) {
  return has_fused_cpu(x) && has_fused_cpu(memory) && compute_type(x) == compute_type(memory);
}

at::Tensor attention_node(const AttentionTensors& t, const AttentionSettings& settings) {
  const Plan plan = plan_of(t, settings);
  Sources sources, projected;
  Core core;
  at::Tensor output, key_mask;
  {
    const BelowAutograd guard;
    if (plan.has_mask) key_mask = t.key_padding_mask.contiguous();
    const at::Tensor weight = t.in_weight.to(plan.type), bias = t.in_bias.to(plan.type);
    for (std::size_t g = 0; g < plan.num_groups; ++g) {
      const std::int64_t first = plan.group_begin[g], row = first * plan.dim;
      const std::int64_t rows = plan.group_begin[g + 1] * plan.dim - row;
      at::Tensor source = first == 0 ? t.x : t.memory;
      if (first == 0 && plan.has_x_pos) source = source + t.x_pos;
      if (first == 1 && plan.has_memory_pos) source = source + t.memory_pos;
      sources[g] = source.to(plan.type).reshape({-1, plan.dim});
      projected[g] = at::addmm(bias.narrow(0, row, rows), sources[g], weight.narrow(0, row, rows).t());
    }
    core = core_forward(plan, parts_of(plan, projected), key_mask);
    output = plan.has_out_proj ? at::addmm(t.out_bias.to(plan.type), core.context, t.out_weight.to(plan.type).t())
                               : core.context.alias();
    output = output.view({plan.batch, plan.queries, plan.dim});
  }
  if (needs_node(t.x, t.memory, t.x_pos, t.memory_pos, t.in_weight, t.in_bias, t.out_weight, t.out_bias)) {
    auto node = attach_node<AttentionNode>(output, t.x, t.memory, t.x_pos, t.memory_pos, t.in_weight, t.in_bias,
                                           t.out_weight, t.out_bias);
    node->plan = plan;
    node->core = std::move(core);
    node->sources = std::move(sources);
    node->projected = std::move(projected);
    for (const at::Tensor& tensor : {t.in_weight, t.out_weight, key_mask}) node->save(tensor);
  }
  return output;
}

}  // namespace lerobot::nn
