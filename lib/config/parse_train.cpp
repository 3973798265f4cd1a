#include "lerobot/config/parse_train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "arguments.hpp"
#include "assemble.hpp"
#include "environment.hpp"
#include "lerobot/config/validate.hpp"
#include "lerobot/config/value.hpp"
#include "policy_block.hpp"
#include "resume.hpp"
#include "sources.hpp"

namespace lerobot::config {
namespace fs = std::filesystem;
namespace {

/// One run of the parser. Its methods are the groups of checks, called in order by parse().
class TrainParser {
 public:
  TrainParser(const policies::Registry& registry, const Environment& environment)
      : registry_(registry), environment_(environment), schema_(train_schema(registry)) {}

  ParsedTrain parse(std::span<const std::string> words) {
    arguments_ = split_arguments(words);
    for (Flag& flag : arguments_.flags)  // `--policy=act`, an older form of `--policy.type=act`
      if (flag.name == "policy" && flag.text.find('{') == flag.text.npos && flag.text != "null")
        flag.name = "policy.type";
    if (arguments_.help) {
      result_.help = help();
      return std::move(result_);
    }
    check_form(arguments_, schema_);
    const Flag* path = arguments_.last("policy.path");
    const Flag* type = arguments_.last("policy.type");
    if (path && type)
      fail(ErrorKind::kConfig,
           "Cannot specify both --policy.path={} and --policy.type={}: the type stands in the path's config.json.",
           path->text, type->text);
    find_sources();
    merge();
    decode_settings();
    resolve_resume();
    resolve_policy();
    check_rename_map();
    name_output_dir();
    settle_optimizer(config(), registry_, schema_, merged_, arguments_);
    check_needs();
    check_environment_block();
    check_combinations(config());
    check_variables(environment_.variables);
    resolve_layout();
    refuse_unbuilt(config(), environment_.built);
    if (resume_) list_overrides(file_, source_, schema_, arguments_, result_);
    return std::move(result_);
  }

 private:
  TrainConfig& config() { return result_.config; }

  std::string help() {
    std::map<std::string, std::string, std::less<>> kinds;
    for (const Node& node : schema_)
      if (const Flag* type = arguments_.last(node.field.name + ".type"); type && node.alternative(type->text))
        kinds[node.field.name] = type->text;
    return help_text(schema_, kinds);
  }

  /// Reads the configuration file, and settles whether the run is resumed and from where.
  void find_sources() {
    if (const Flag* path = arguments_.last("config_path")) {
      source_ = locate_config(path->text);
      file_ = read_tokens(source_);
    }
    Json words = file_;  // of the few settings that decide about sources, flags are needed already here
    for (const Flag& flag : arguments_.flags)
      if (flag.name == "resume" || flag.name == "output_dir" || flag.name == "plan") words[flag.name] = flag.text;
    Json resume = "false";
    if (words.contains("resume")) resume = decode_value(node_named(schema_, "resume").field, "resume", words["resume"]);
    resume_ = resume == "true";
    planning_ = words.contains("plan") && !no_block(words["plan"]);
    if (resume != "auto") return;
    automatic_ = true;
    const auto output_dir = text_in(words, "output_dir");
    if (!output_dir)
      result_.warnings.emplace_back(
          "resume=auto: output_dir is not set, so there is nowhere to look for a checkpoint; a new run begins.");
    const auto checkpoint = output_dir ? environment_.find_checkpoint(*output_dir) : std::nullopt;
    if (!checkpoint) return;
    resume_ = true;
    source_ = locate_config(*checkpoint);
    file_ = read_tokens(source_);
  }

  /// Lays the flags over the file, apart from the policy's, which come over `--policy.path` later.
  void merge() {
    drop_old_keys(file_);
    if (resume_ && !source_.empty()) add_run_settings(file_, checkpoint_of(source_));
    merged_ = file_;
    for (const Flag& flag : arguments_.flags)
      if (flag.name != "config_path" && !flag.is_of("policy")) apply_flag(merged_, flag, schema_);
    merged_["resume"] = resume_ ? "true" : "false";
  }

  /// Decodes all but policy, optimizer and scheduler, and checks each setting by itself.
  void decode_settings() {
    naming_file(source_, arguments_, [&] {
      decoded_ = decode_block(schema_, merged_);
      config() = config_from_decoded(decoded_);
      check_settings(config(), result_.warnings);
    });
    if (const Json& given = decoded_.at("reward_model"); !given.is_null())
      fail(ErrorKind::kConfig,
           "reward_model: Reward-model runs, sharded or not, are not supported; leave it null, got {}.",
           given.get<std::string>());
    if (const Json& given = decoded_.at("sample_weighting"); !given.is_null())
      fail(ErrorKind::kConfig, "sample_weighting: weights of samples are not supported; leave it null, got {}.",
           given.get<std::string>());
    const std::vector<std::string>& known = environment_.image_transform_types;
    for (const ImageTransform& transform : config().dataset.image_transforms.tfs)
      if (!known.empty() && std::find(known.begin(), known.end(), transform.type) == known.end())
        fail(ErrorKind::kConfig, "dataset.image_transforms.tfs.{}.type: unknown transform \"{}\"; known: {}.",
             transform.name, transform.type, fmt::join(known, ", "));
  }

  void resolve_resume() {
    config().checkpoint_path.reset();
    if (!resume_) return;
    if (source_.empty())
      fail(ErrorKind::kConfig,
           "resume=true needs --config_path=<run>/checkpoints/<step>/pretrained_model/train_config.json, or use "
           "--resume=auto with output_dir.");
    if (const Flag* path = arguments_.last("policy.path"); path && !automatic_)
      fail(ErrorKind::kConfig,
           "Cannot specify both --resume=true and --policy.path={}: a resumed run takes its weights from the "
           "checkpoint.",
           path->text);
    config().checkpoint_path = checkpoint_of(source_).string();
  }

  void resolve_policy() {
    const Node& node = node_named(schema_, "policy");
    const auto stored = file_.find("policy");
    const PolicyTokens tokens =
        policy_tokens(node, stored == file_.end() ? Json() : *stored, source_, arguments_, resume_);
    if (no_block(tokens.block) || (tokens.block.is_object() && tokens.block.empty()))
      fail(ErrorKind::kConfig,
           "Neither policy nor reward_model is configured; give --policy.type= one of {}, or --policy.path=<folder>.",
           fmt::join(registry_.names(), ", "));
    Json settings;
    naming_file(tokens.file, arguments_, [&] {
      Json all = Json::object();
      all["policy"] = tokens.block;
      settings = decode_choice_by_type(node, all);
    });
    const auto type = settings.at("type").get<std::string>();
    check_flags_fit(arguments_, node, *node.alternative(type));
    if (resume_) settings["pretrained_path"] = (checkpoint_of(source_) / "pretrained_model").string();
    settings["device"] = choose_device(settings.at("device"), environment_.devices, result_.warnings);
    registry_.at(type).validate(settings);
    config().policy.settings = std::move(settings);
    if (config().policy.use_peft() && !config().policy.pretrained_path())
      fail(ErrorKind::kConfig,
           "policy.use_peft=true needs policy.pretrained_path, the checkpoint of the adapter; start from "
           "--policy.path.");
    if (config().job_name.value_or("").empty()) config().job_name = type;
  }

  void check_rename_map() {
    if (!config().rename_map.empty() && !config().policy.pretrained_path())
      fail(ErrorKind::kConfig,
           "rename_map: renaming {} key(s) needs a pretrained policy to rename for; start from --policy.path.",
           config().rename_map.size());
  }

  void name_output_dir() {
    if (!config().output_dir) {
      std::tm local{};
      ::localtime_r(&environment_.now, &local);
      std::array<char, 32> stamp{};
      std::strftime(stamp.data(), stamp.size(), "%Y-%m-%d/%H-%M-%S", &local);
      config().output_dir = fmt::format("outputs/train/{}_{}", stamp.data(), *config().job_name);
    }
    const fs::path folder = *config().output_dir;
    if (folder.empty())
      fail(ErrorKind::kConfig,
           "output_dir is empty; name a folder, or null for outputs/train/<date>/<time>_<job_name>.");
    std::error_code error;
    const fs::file_status status = fs::status(folder, error);
    if (!fs::exists(status) || planning_) return;
    if (!fs::is_directory(status))
      fail(ErrorKind::kConfig, "output_dir: {} already exists and is not a folder.", folder.string());
    if (!resume_ && !automatic_)
      fail(ErrorKind::kConfig,
           "output_dir: {} already exists and resume is false. Name another folder, or go on with --resume=auto.",
           folder.string());
  }

  void check_needs() {
    if (config().eval_steps > 0 && config().dataset.eval_split <= 0.0)
      fail(ErrorKind::kConfig,
           "eval_steps={} needs held-out episodes, but dataset.eval_split={}; set eval_split above 0.",
           config().eval_steps, config().dataset.eval_split);
    if (config().policy.push_to_hub() && !config().policy.repo_id())
      fail(ErrorKind::kConfig,
           "policy: 'repo_id' argument missing. Give --policy.repo_id=user/name, or --policy.push_to_hub=false.");
    if (config().save_checkpoint_to_hub && !config().policy.repo_id())
      fail(ErrorKind::kConfig, "save_checkpoint_to_hub=true needs policy.repo_id; give --policy.repo_id=user/name.");
  }

  void check_environment_block() {
    const Json& env = decoded_.at("env");
    if (env.is_null()) return;
    const bool evaluates = config().parallelism.sharded() && config().env_eval_freq > 0;
    fail(ErrorKind::kConfig, "env: {} is not supported in this version{}; leave env null.", env.get<std::string>(),
         evaluates ? " (nor is environment evaluation on a sharded run in any)" : "");
  }

  void resolve_layout() {
    config().parallelism = resolve_topology(config().parallelism, config().run.plan.value_or(environment_.world_size));
    if (config().checkpoint_format != CheckpointFormat::kSafetensors && !config().parallelism.sharded())
      fail(ErrorKind::kConfig,
           "checkpoint_format={} needs a sharded run, but the layout resolved to a non-sharded one (dp_replicate={}, "
           "dp_shard={}); start more ranks, or use checkpoint_format=safetensors.",
           text(config().checkpoint_format), config().parallelism.dp_replicate, config().parallelism.dp_shard);
    TrackioConfig& trackio = config().trackio;
    if (trackio.enable && !trackio.run_id)
      trackio.run_id = fs::path(*config().output_dir).lexically_normal().filename().string();
  }

  const policies::Registry& registry_;
  const Environment& environment_;
  const std::vector<Node> schema_;
  Arguments arguments_;
  fs::path source_;  ///< the configuration file; empty when there is none
  bool resume_ = false;
  bool automatic_ = false;        ///< resume=auto was asked for
  bool planning_ = false;         ///< nothing is written
  Json file_ = Json::object();    ///< tokens of the file
  Json merged_ = Json::object();  ///< with the flags on top, the policy's aside
  Json decoded_;
  ParsedTrain result_;
};

}  // namespace

ParsedTrain parse_train(std::span<const std::string> arguments, const policies::Registry& registry,
                        const Environment& environment) {
  return TrainParser(registry, environment).parse(arguments);
}

ParsedTrain parse_train(int argc, const char* const* argv, const policies::Registry& registry,
                        const Environment& environment) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  return parse_train(arguments, registry, environment);
}

}  // namespace lerobot::config
