#include "lerobot/ddp/replicate.hpp"

#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <unordered_map>

#include "lerobot/comm/collectives.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/nn/hook.hpp"

namespace lerobot::ddp {
namespace {

/// The trainable parameters, each once, in registration order.
torch::OrderedDict<std::string, at::Tensor> trainable(const torch::nn::Module& module) {
  torch::OrderedDict<std::string, at::Tensor> found;
  for (const auto& entry : module.named_parameters())
    if (entry.value().requires_grad()) found.insert(entry.key(), entry.value());
  return found;
}

}  // namespace

/// The state behind a handle: the reducer, and the hook that drives it.
class Replica : public nn::Hook, public std::enable_shared_from_this<Replica> {
 public:
  Replica(std::shared_ptr<torch::nn::Module> module, comm::ProcessGroupPtr group, const DdpOptions& options)
      : module_(std::move(module)), group_(std::move(group)), options_(options) {
    point_ = dynamic_cast<nn::HookPoint*>(module_.get());
    if (point_ == nullptr)
      fail(ErrorKind::kConfig, "replicate: module {} has no hook point. Declare its holder with LEROBOT_MODULE.",
           module_->name());
    torch::NoGradGuard no_grad;
    for (const auto& parameter : module_->parameters()) comm::broadcast(*group_, parameter.detach());
    broadcast_buffers();
    make_reducer();
  }

  void attach() {
    if (reducer_) point_->attach(nn::HookLayer::kUnit, shared_from_this());
  }
  void detach() { point_->detach(nn::HookLayer::kUnit); }

  void around(nn::Call& call) override {
    if (!torch::GradMode::is_enabled() || !module_->is_training()) return call.run();
    if (is_window_start_) {
      torch::NoGradGuard no_grad;
      broadcast_buffers();
    }
    is_window_start_ = should_sync_;
    if (!should_sync_) return call.run();
    try {
      reducer_->prepare_for_forward();
      static_cast<void>(reducer_->rebuild_buckets());
    } catch (const c10::Error& error) {
      rethrow(error);
    }
    call.run();
    std::vector<at::Tensor> outputs;
    if (options_.find_unused_parameters && !options_.static_graph)
      call.for_outputs([&](at::Tensor& output) {
        if (output.requires_grad()) outputs.push_back(output);
      });
    try {
      reducer_->prepare_for_backward(outputs);
    } catch (const c10::Error& error) {
      rethrow(error);
    }
  }

  bool should_sync_ = true;

 private:
  void broadcast_buffers() {
    for (const auto& buffer : module_->buffers()) comm::broadcast(*group_, buffer);
  }

  /// The reducer's word on a parameter that got no gradient, in ours: with its name and the flag that allows it.
  [[noreturn]] void rethrow(const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.find("find_unused_parameters") == std::string::npos) throw error;
    std::string names;
    for (const auto& entry : trainable(*module_))
      if (!entry.value().grad().defined()) names += (names.empty() ? "" : ", ") + entry.key();
    fail(ErrorKind::kConfig,
         "ddp: the last backward gave no gradient to {}, and find_unused_parameters is false. Set "
         "--accelerator.ddp.find_unused_parameters=true, or use every parameter in the loss.",
         names.empty() ? "some parameters" : names);
  }

  void make_reducer() {
    const auto named = trainable(*module_);
    if (named.is_empty()) return;
    std::vector<at::Tensor> parameters = named.values();
    const std::vector<bool> is_sparse(parameters.size(), false);
    const auto first = static_cast<std::size_t>(options_.first_bucket_bytes),
               size = static_cast<std::size_t>(options_.bucket_bytes);
    auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(parameters, {first, size}, is_sparse, {}, {});
    std::reverse(buckets.begin(), buckets.end());  // backward finishes the last layers first
    std::unordered_map<std::size_t, std::string> names;
    for (std::size_t i = 0; i < named.size(); ++i) names[i] = named.keys()[i];
    reducer_ = std::make_shared<c10d::Reducer>(parameters, buckets, group_, is_sparse, options_.bucket_bytes,
                                               options_.find_unused_parameters, options_.gradient_as_bucket_view, names,
                                               options_.first_bucket_bytes, /*skip_all_reduce_unused_params=*/false,
                                               /*use_python_reducer=*/false, std::vector<std::int64_t>{});
    logger_ = std::make_shared<c10d::Logger>(reducer_);  // the reducer reads it without a check
    reducer_->set_logger(logger_);
    logger_->set_construction_data_and_log(std::string(point_->class_name()), {}, -1, true, options_.static_graph,
                                           false);
    if (options_.static_graph) reducer_->set_static_graph();
  }

  std::shared_ptr<torch::nn::Module> module_;
  comm::ProcessGroupPtr group_;
  DdpOptions options_;
  nn::HookPoint* point_ = nullptr;
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  bool is_window_start_ = true;
};

Replicated::Replicated(std::shared_ptr<Replica> replica) : replica_(std::move(replica)) {}
Replicated::Replicated(Replicated&&) noexcept = default;
Replicated& Replicated::operator=(Replicated&& other) noexcept {
  if (this != &other) {
    if (replica_) replica_->detach();
    replica_ = std::move(other.replica_);
  }
  return *this;
}
Replicated::~Replicated() {
  if (replica_) replica_->detach();
}

Replicated replicate(std::shared_ptr<torch::nn::Module> module, comm::ProcessGroupPtr group, DdpOptions options) {
  auto replica = std::make_shared<Replica>(std::move(module), std::move(group), options);
  replica->attach();
  return Replicated(std::move(replica));
}

NoSync::NoSync(Replicated& replicated) : replica_(replicated.replica_), before_(replica_->should_sync_) {
  replica_->should_sync_ = false;
}
NoSync::~NoSync() { replica_->should_sync_ = before_; }

}  // namespace lerobot::ddp
