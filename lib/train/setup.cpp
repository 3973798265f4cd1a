#include "setup.hpp"

#include <torch/torch.h>

#include <filesystem>

#include "lerobot/comm/comm.hpp"
#include "lerobot/core/error.hpp"
#include "resume.hpp"

namespace lerobot::train {
namespace fs = std::filesystem;
namespace {

std::map<std::string, std::string> rename_map(const Run& run) {
  return {run.config.rename_map.begin(), run.config.rename_map.end()};
}

/// The windows that the policy asks for.
data::DeltaIndices delta_indices(const policies::PolicyType& type, const Json& settings) {
  data::DeltaIndices deltas;
  if (type.action_delta_indices) deltas.action = type.action_delta_indices(settings);
  if (type.observation_delta_indices) deltas.observation = type.observation_delta_indices(settings);
  for (auto* indices : {&deltas.action, &deltas.observation})
    if (*indices && (*indices)->empty()) indices->reset();
  return deltas;
}

std::shared_ptr<const data::ImageTransforms> image_transforms(const config::ImageTransformsConfig& config) {
  if (!config.enable) return nullptr;
  data::ImageTransformsConfig built{
      .enable = true, .max_num_transforms = config.max_num_transforms, .random_order = config.random_order, .tfs = {}};
  for (const auto& tf : config.tfs) built.tfs.push_back({tf.name, tf.weight, tf.type, tf.kwargs});
  return std::make_shared<const data::ImageTransforms>(built);
}

/// Opens the dataset: training frames and, with a split, held-out ones.
void open_dataset(Run& run) {
  const config::DatasetConfig& config = run.config.dataset;
  const fs::path root = data::find_dataset({.root = config.root ? std::optional<fs::path>(*config.root) : std::nullopt,
                                            .repo_id = config.repo_id,
                                            .revision = config.revision});
  auto metadata = std::make_shared<data::Metadata>(data::read_metadata(root, run.logger));
  if (config.use_imagenet_stats) data::use_imagenet_stats(metadata->stats, metadata->info);
  run.camera_keys = metadata->info.camera_keys();

  data::DatasetOptions options;
  options.delta_timestamps = data::delta_timestamps(
      metadata->info, delta_indices(*run.policy_type, run.config.policy.settings), rename_map(run));
  options.tolerance_s = run.config.tolerance_s;
  options.return_uint8 = true;
  options.depth_output_unit =
      config.depth_output_unit == config::DepthUnit::kMetre ? data::DepthUnit::kMetre : data::DepthUnit::kMillimetre;
  const std::vector<std::int64_t> chosen =
      data::select_episodes(config.episodes, config.exclude_episodes.value_or(std::vector<std::int64_t>{}),
                            static_cast<std::int64_t>(metadata->episodes.size()), run.logger);
  const bool is_whole = !config.episodes && !config.exclude_episodes;
  const data::EpisodeSplit split = data::split_episodes(metadata->episodes, chosen, config.eval_split);

  data::DatasetOptions training = options;
  if (!is_whole || !split.eval.empty()) training.episodes = split.train;
  training.image_transforms = image_transforms(config.image_transforms);
  run.train_set = std::make_shared<data::Dataset>(metadata, training, run.logger);
  run.train_frames = run.train_set->num_frames();
  run.train_episodes = static_cast<std::int64_t>(run.train_set->episodes().size());
  if (!split.eval.empty()) {
    data::DatasetOptions held_out = options;
    held_out.episodes = split.eval;
    run.eval_set = std::make_shared<data::Dataset>(metadata, held_out, run.logger);
    run.eval_positions = data::eval_positions(*run.eval_set, run.config.max_eval_samples);
  }
}

/// Fills the policy's features from the dataset: outputs always, inputs when the configuration names none.
void fill_features(Run& run) {
  Json& settings = run.config.policy.settings;
  const data::DatasetInfo& info = run.train_set->metadata().info;
  const data::PolicyFeatures features = data::policy_features(info);
  settings["output_features"] = features.outputs;
  const Json& inputs = settings.at("input_features");
  if (inputs.is_null() || inputs.empty()) {
    Json renamed = Json::object();
    const auto names = rename_map(run);
    for (const auto& [name, feature] : features.inputs.items()) {
      const auto found = names.find(name);
      renamed[found == names.end() ? name : found->second] = feature;
    }
    settings["input_features"] = renamed;
  } else {
    data::check_cameras(inputs, info, rename_map(run));
  }
  if (run.policy_type->validate) run.policy_type->validate(settings);
}

/// The pipelines: the policy's own on a fresh run, else those of the files, see `pre_processor_overrides`.
void build_processors(Run& run) {
  const Json& settings = run.config.policy.settings;
  processors::PipelineOptions options{
      .input_features = processors::parse_features(settings.at("input_features"), "policy.input_features"),
      .output_features = processors::parse_features(settings.at("output_features"), "policy.output_features"),
      .norm_map = settings.contains("normalization_mapping")
                      ? processors::parse_normalization_map(settings.at("normalization_mapping"),
                                                            "policy.normalization_mapping")
                      : processors::NormalizationMap{},
      .stats = run.train_set->metadata().stats,
      .device = run.config.policy.device(),
      .rename_map = run.config.rename_map};
  for (const auto& [from, to] : run.config.rename_map)
    if (auto node = options.stats.extract(from)) {
      node.key() = to;
      options.stats.insert(std::move(node));
    }
  const auto pretrained = run.config.policy.pretrained_path();
  if (!pretrained) {
    run.preprocessor.emplace(processors::make_pre_processor(options));
    run.postprocessor.emplace(processors::make_post_processor(options));
    return;
  }
  const bool with_stats = !run.config.checkpoint_path;
  run.preprocessor.emplace(processors::Pipeline::load(*pretrained, processors::kPreProcessor,
                                                      processors::pre_processor_overrides(options, with_stats)));
  run.postprocessor.emplace(processors::Pipeline::load(*pretrained, processors::kPostProcessor,
                                                       processors::post_processor_overrides(options, with_stats)));
}

void build_policy(Run& run) {
  if (run.config.seed) torch::manual_seed(static_cast<std::uint64_t>(*run.config.seed));
  run.policy = run.policy_type->make(run.config.policy.settings);
  if (const auto from = run.config.policy.pretrained_path()) load_policy_weights(run, *from);
  if (run.seams.on_policy) run.seams.on_policy(*run.policy);
  if (run.seams.noise) run.policy->set_noise_source(run.seams.noise);
  run.policy->to(run.device);
}

optim::OptimizerKind kind_of(config::OptimizerKind kind) {
  switch (kind) {
    case config::OptimizerKind::kAdam:
      return optim::OptimizerKind::kAdam;
    case config::OptimizerKind::kAdamW:
      return optim::OptimizerKind::kAdamW;
    case config::OptimizerKind::kSgd:
      return optim::OptimizerKind::kSgd;
    case config::OptimizerKind::kMultiAdam:
      break;
  }
  fail(ErrorKind::kConfig, "optimizer.type: multi_adam is not in this version; use adam, adamw or sgd.");
}

optim::ScheduleOptions schedule_options(const config::SchedulerConfig& config) {
  return {.kind = optim::schedule_kind(config::text(config.kind), config.name),
          .num_warmup_steps = config.num_warmup_steps,
          .num_vqvae_training_steps = config.num_vqvae_training_steps,
          .num_cycles = config.num_cycles,
          .num_decay_steps = config.num_decay_steps,
          .peak_lr = config.peak_lr,
          .decay_lr = config.decay_lr};
}

/// Optimizer and schedule over the whole parameters; a layout that shards rebinds them.
void build_optimizer(Run& run) {
  const config::OptimizerConfig& config = *run.config.optimizer;
  const optim::GroupOptions base{.lr = config.lr,
                                 .beta1 = config.betas[0],
                                 .beta2 = config.betas[1],
                                 .eps = config.eps,
                                 .weight_decay = config.weight_decay,
                                 .momentum = config.momentum,
                                 .dampening = config.dampening,
                                 .nesterov = config.nesterov,
                                 .initial_lr = {}};
  std::vector<policies::ParamGroup> wanted;
  if (run.config.use_policy_training_preset) {
    wanted = run.policy->optim_groups();
  } else {
    wanted.emplace_back();
    for (const auto& entry : run.policy->named_parameters())
      if (entry.value().requires_grad()) wanted.back().names.push_back(entry.key());
  }
  const auto parameters = run.policy->named_parameters();
  std::vector<optim::ParamGroup> groups;
  for (const auto& group : wanted) {
    optim::GroupOptions options = base;
    if (group.lr) options.lr = *group.lr;
    std::vector<std::pair<std::string, at::Tensor>> members;
    for (const auto& name : group.names) members.emplace_back(name, parameters[name]);
    groups.push_back(optim::make_group(options, members));
  }
  run.optimizer.emplace(kind_of(config.kind), std::move(groups));
  if (run.config.scheduler) {
    optim::Schedule schedule =
        optim::make_schedule(schedule_options(*run.config.scheduler), run.config.steps, config.lr);
    if (!schedule.note.empty()) run.logger.info("{}", schedule.note);
    run.schedule.emplace(*run.optimizer, std::move(schedule));
  }
}

data::EpisodeAwareSampler sampler_of(const Run& run) {
  return data::make_sampler(*run.train_set,
                            {.episodes = {},
                             .drop_n_first_frames = 0,
                             .drop_n_last_frames = run.policy_type->drop_n_last_frames,
                             .shuffle = true,
                             .seed = static_cast<std::uint64_t>(run.config.seed.value_or(0))},
                            run.logger);
}

void make_batches(Run& run, data::EpisodeAwareSampler sampler) {
  if (run.seams.batches) {
    run.batches = run.seams.batches(*run.train_set);
    return;
  }
  run.batches = std::make_unique<data::Loader>(
      run.train_set, std::move(sampler),
      data::LoaderOptions{.batch_size = run.config.batch_size,
                          .dp_rank = run.dp_rank(),
                          .dp_world = static_cast<int>(run.dp_world()),
                          .num_workers = static_cast<int>(run.config.num_workers),
                          .prefetch_factor = static_cast<int>(run.config.prefetch_factor),
                          .pin_memory = run.device.is_cuda(),
                          .seed = static_cast<std::uint64_t>(run.config.seed.value_or(0))},
      run.logger, run.position.window_start);
}

}  // namespace

policies::Batch Run::prepare(data::Batch raw) {
  data::to_float_images(raw, camera_keys);
  return (*preprocessor)(policies::Batch{std::move(raw.tensors), std::move(raw.task)});
}

void Run::begin_window() {
  position.window_start = position.dealt;
  if (config.accelerator.gradient_accumulation.steps > 1) position.window_rng = checkpoint::capture_torch_rng().cpu;
}

void Run::deal() {
  const data::BatchPlan plan({.num_frames = sampler_frames, .batch_size = config.batch_size, .dp_world = dp_world()},
                             position.dealt);
  position.dealt = plan.progress(1);
}

void Run::advance() {
  ++position.step;
  position.progress = position.dealt;
}

void Run::create_output_dir() const {
  std::error_code problem;
  fs::create_directories(*config.output_dir, problem);
  if (problem) fail(ErrorKind::kConfig, "output_dir: cannot create {}: {}.", *config.output_dir, problem.message());
}

std::unique_ptr<Run> set_up(config::ParsedTrain parsed, Context context, const policies::Registry& registry,
                            log::Logger& logger, Seams seams) {
  auto made = std::make_unique<Run>(std::move(parsed.config), std::move(context), logger, std::move(seams));
  Run& run = *made;
  c10d::ProcessGroup& world = *run.context.world;
  for (const auto& warning : parsed.warnings) logger.warning("{}", warning);
  for (const auto& change : parsed.overrides)
    logger.info("{}: {} -> {}", change.name, change.old_value, change.new_value);

  run.device = at::Device(run.config.policy.device());
  if (run.device.is_cuda() && !run.device.has_index())
    run.device.set_index(static_cast<c10::DeviceIndex>(run.context.local_rank));
  run.device_group = comm::make_device_group(run.context.world, run.device, run.config.run.timeout_s);
  run.policy_type = &registry.at(run.config.policy.type());

  std::optional<Resumed> resumed;
  comm::on_every_rank(world, ErrorKind::kInternal, "set-up", [&] {
    if (run.config.checkpoint_format != config::CheckpointFormat::kSafetensors)
      fail(ErrorKind::kConfig,
           "checkpoint_format={}: shard checkpoints are not in this version; use checkpoint_format=safetensors, which "
           "gathers "
           "the weights of a sharded run.",
           config::text(run.config.checkpoint_format));
    if (run.config.checkpoint_path) resumed = read_resumed(run);
    open_dataset(run);
    fill_features(run);
    build_policy(run);
    build_processors(run);
    build_optimizer(run);
    data::EpisodeAwareSampler sampler = sampler_of(run);
    run.sampler_frames = sampler.num_frames();
    if (resumed) resume_position(run, *resumed);
    make_batches(run, std::move(sampler));
  });
  run.layout = make_layout(run);
  comm::on_every_rank(world, ErrorKind::kCheckpoint, "resume", [&] {
    if (resumed) resume_state(run, *resumed);
    start_random_stream(run, resumed ? &*resumed : nullptr);
  });
  return made;
}

}  // namespace lerobot::train
