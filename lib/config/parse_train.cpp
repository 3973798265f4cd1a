#include "lerobot/config/parse_train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>

#include "arguments.hpp"
#include "assemble.hpp"
#include "lerobot/config/train_json.hpp"
#include "lerobot/config/validate.hpp"
#include "lerobot/config/value.hpp"
#include "sources.hpp"

namespace lerobot::config {
namespace fs = std::filesystem;
namespace {

constexpr std::array<const char*, 3> kGuarded{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "ACCELERATE_USE_FSDP",
                                              "ACCELERATE_USE_PARALLELISM_CONFIG"};
constexpr const char* kAcknowledge = "LEROBOT_ALLOW_ACCELERATE_ENV";

/// A token as plain text; nothing when it is absent or null.
std::optional<std::string> text_in(const Json& tokens, const char* key) {
  const Field field{.name = key, .type = FieldType::kString, .default_value = {}, .optional = true};
  const auto found = tokens.is_object() ? tokens.find(key) : tokens.end();
  if (!tokens.is_object() || found == tokens.end()) return std::nullopt;
  const Json value = decode_value(field, key, *found);
  return value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
}

/// The folder itself, or where it points when its last part is a link such as `checkpoints/last`.
fs::path behind_link(const fs::path& folder) {
  std::error_code error;
  const fs::path target = fs::read_symlink(folder, error);
  if (error) return folder;
  return target.is_absolute() ? target : (folder.parent_path() / target).lexically_normal();
}

/// Lays the leaves of a JSON tree out as dotted names.
void flatten(const Json& json, const std::string& prefix, std::vector<std::pair<std::string, std::string>>& leaves) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items()) flatten(value, prefix.empty() ? key : prefix + '.' + key, leaves);
  } else {
    leaves.emplace_back(prefix, json.dump());
  }
}

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
    if (arguments_.last("policy.path") && arguments_.last("policy.type"))
      fail(ErrorKind::kConfig,
           "Cannot specify both --policy.path={} and --policy.type={}: the type stands in the path's config.json.",
           arguments_.last("policy.path")->text, arguments_.last("policy.type")->text);
    find_sources();
    merge();
    decode_settings();
    resolve_resume();
    resolve_policy();
    check_rename_map();
    name_output_dir();
    settle_optimizer();
    check_needs();
    check_blocks_of_others();
    check_combinations(config());
    check_variables();
    resolve_layout();
    refuse_unbuilt(config(), environment_.built);
    if (config().resume == Resume::kTrue) compare_with_checkpoint();
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
    const Flag* path = arguments_.last("config_path");
    if (path) source_ = locate_config(path->text);
    if (path) file_ = read_tokens(source_);
    Json words = file_;  // of the few settings that decide about sources, flags are needed already here
    for (const Flag& flag : arguments_.flags)
      if (flag.name == "resume" || flag.name == "output_dir" || flag.name == "plan") words[flag.name] = flag.text;
    const Node& node = node_named(schema_, "resume");
    const Json resume = words.contains("resume") ? decode_value(node.field, "resume", words["resume"]) : Json("false");
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
    if (resume_ && !source_.empty()) add_run_settings();
    merged_ = file_;
    if (const auto policy = merged_.find("policy"); policy != merged_.end() && policy->is_object())
      file_path_ = text_in(*policy, "path");
    for (const Flag& flag : arguments_.flags)
      if (flag.name != "config_path" && !flag.is_of("policy")) apply_flag(merged_, flag, schema_);
    merged_["resume"] = resume_ ? "true" : "false";
  }

  /// The settings that are ours alone are stored beside the checkpoint's `train_config.json`.
  void add_run_settings() {
    const fs::path file = checkpoint_dir() / "training_state" / "run_settings.json";
    std::error_code error;
    if (!fs::exists(file, error)) return;
    const Json stored = read_tokens(file);
    const Json known = to_json(RunSettings{});
    for (const auto& [key, value] : stored.items()) {
      if (!known.contains(key))
        fail(ErrorKind::kCheckpoint, "{}: the key \"{}\" is not valid for run settings.", file.string(), key);
      if (!file_.contains(key)) file_[key] = value;
    }
  }

  /// Decodes all but policy, optimizer and scheduler, and checks each setting by itself.
  void decode_settings() {
    naming_file(source_, [&] {
      decoded_ = decode_block(schema_, merged_);
      config() = config_from_decoded(decoded_);
      check_settings(config(), result_.warnings);
    });
    for (const char* block : {"reward_model", "sample_weighting"})
      if (!decoded_.at(block).is_null())
        fail(ErrorKind::kConfig, "{}: {} are not supported; leave it null, got {}.", block,
             block == std::string_view("reward_model") ? "Reward-model runs, sharded or not," : "weights of samples",
             decoded_.at(block).get<std::string>());
    if (!environment_.image_transform_types.empty())
      for (const ImageTransform& transform : config().dataset.image_transforms.tfs)
        if (const auto& known = environment_.image_transform_types;
            std::find(known.begin(), known.end(), transform.type) == known.end())
          fail(ErrorKind::kConfig, "dataset.image_transforms.tfs.{}.type: unknown transform \"{}\"; known: {}.",
               transform.name, transform.type, fmt::join(known, ", "));
  }

  /// Runs `step`; an Error about a setting that no flag gives gets the name of the file that gave it.
  template <typename Step>
  void naming_file(const fs::path& file, Step&& step) {
    try {
      step();
    } catch (const Error& error) {
      const std::string_view message = error.what();
      const std::size_t begin = message.find('`') + 1;
      const std::string name(message.substr(begin, begin == 0 ? 0 : message.find('`', begin) - begin));
      const bool from_flag = std::any_of(arguments_.flags.begin(), arguments_.flags.end(), [&](const Flag& flag) {
        return flag.is_of(name) || Flag{name, "", ""}.is_of(flag.name);
      });
      if (file.empty() || name.empty() || from_flag) throw;
      throw Error(error.kind(), fmt::format("{} (in {})", message, file.string()));
    }
  }

  fs::path checkpoint_dir() const {
    fs::path folder = source_.parent_path();
    if (folder.empty() || folder == ".") folder = fs::absolute(source_).parent_path();
    return behind_link(folder.parent_path());
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
    config().checkpoint_path = checkpoint_dir().string();
  }

  /// The tokens of the policy: the path's config.json, over it the file, over it the flags.
  Json policy_tokens() {
    const Flag* flag_path = arguments_.last("policy.path");
    const std::optional<std::string> path = resume_     ? std::nullopt
                                            : flag_path ? std::optional(flag_path->text)
                                                        : file_path_;
    Json tokens = Json::object();
    const auto stored = file_.find("policy");
    if (path) {
      tokens = read_policy_tokens(*path);
      if (kind_in_file(tokens, *path).empty())
        fail(ErrorKind::kConfig, "policy.path: {} has no type; expected the name of a policy under `type`.",
             (fs::path(*path) / "config.json").string());
      if (file_path_)
        for (const auto& [key, value] : stored->items())
          if (key != "path" && key != "type" && !no_block(value)) tokens[key] = value;
    } else if (stored != file_.end()) {
      tokens = *stored;
      if (tokens.is_object()) tokens.erase("path");
    }
    Json all{{"policy", std::move(tokens)}};
    for (const Flag& flag : arguments_.flags)
      if (flag.is_of("policy") && flag.name != "policy.path") apply_flag(all, flag, schema_);
    if (path) all["policy"]["pretrained_path"] = Json(*path).dump(-1, ' ', false, Json::error_handler_t::replace);
    return all["policy"];
  }

  std::string kind_in_file(const Json& tokens, const std::string& folder) {
    return in_file(fs::path(folder) / "config.json", [&] { return kind_in(node_named(schema_, "policy"), tokens); });
  }

  void resolve_policy() {
    const Node& node = node_named(schema_, "policy");
    const Json tokens = policy_tokens();
    if (no_block(tokens) || (tokens.is_object() && tokens.empty()))
      fail(ErrorKind::kConfig,
           "Neither policy nor reward_model is configured; give --policy.type= one of {}, or --policy.path=<folder>.",
           fmt::join(registry_.names(), ", "));
    Json settings;
    const fs::path file = policy_path_ ? fs::path(*policy_path_) / "config.json" : source_;
    naming_file(file, [&] { settings = decode_choice_by_type(node, {{"policy", tokens}}); });
    check_flags_fit(arguments_, node, *node.alternative(settings.at("type").get<std::string>()));
    if (resume_) settings["pretrained_path"] = behind_link(checkpoint_dir()).append("pretrained_model").string();
    settings["device"] = choose_device(settings.at("device"), environment_.devices, result_.warnings);
    registry_.at(settings.at("type").get<std::string>()).validate(settings);
    config().policy.settings = std::move(settings);
    if (config().policy.use_peft() && !config().policy.pretrained_path())
      fail(ErrorKind::kConfig,
           "policy.use_peft=true needs policy.pretrained_path, the checkpoint of the adapter; start from "
           "--policy.path.");
    if (config().job_name.value_or("").empty()) config().job_name = config().policy.type();
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
    std::error_code error;
    const fs::path folder = *config().output_dir;
    const fs::file_status status = fs::status(folder, error);
    if (!fs::exists(status) || planning_) return;
    if (!fs::is_directory(status))
      fail(ErrorKind::kConfig, "output_dir: {} already exists and is not a folder.", folder.string());
    if (!resume_ && !automatic_)
      fail(ErrorKind::kConfig,
           "output_dir: {} already exists and resume is false. Name another folder, or go on with --resume=auto.",
           folder.string());
  }

  void settle_optimizer() {
    const Node& optimizer = node_named(schema_, "optimizer");
    const Node& scheduler = node_named(schema_, "scheduler");
    const auto given = [&](const char* block) { return merged_.contains(block) ? merged_.at(block) : Json(); };
    const auto fit = [&](const Node& node, const Json& block) {
      if (!block.is_null()) check_flags_fit(arguments_, node, *node.alternative(block.at("type").get<std::string>()));
    };
    Json chosen;
    Json schedule;
    if (config().use_policy_training_preset && !resume_) {
      const policies::PolicyType& type = registry_.at(config().policy.type());
      const Json preset = type.optimizer_preset(config().policy.settings);
      const Json schedule_preset = type.scheduler_preset(config().policy.settings);
      check_against_preset(optimizer, given("optimizer"), preset);
      check_against_preset(scheduler, given("scheduler"), schedule_preset);
      const Flag* cleared = arguments_.last("scheduler");
      chosen = optimizer_in_force(optimizer, given("optimizer"), preset);
      schedule = scheduler_in_force(scheduler, given("scheduler"), schedule_preset, cleared && no_block(cleared->text));
    } else {
      chosen = decode_choice_by_type(optimizer, merged_);
      schedule = decode_choice_by_type(scheduler, merged_);
    }
    fit(optimizer, chosen);
    fit(scheduler, schedule);
    const bool own = !config().use_policy_training_preset;
    if (chosen.is_null() || (own && schedule.is_null()))
      fail(ErrorKind::kConfig,
           "Optimizer and Scheduler must be set {}: optimizer is {}, scheduler is {}. Give --optimizer.type and "
           "--scheduler.type.",
           own ? "when use_policy_training_preset=false" : "in the checkpoint's configuration",
           chosen.is_null() ? "null" : chosen.at("type").get<std::string>(),
           schedule.is_null() ? "null" : schedule.at("type").get<std::string>());
    config().optimizer = optimizer_from_decoded(chosen);
    config().scheduler = scheduler_from_decoded(schedule);
    std::vector<std::string> again;
    check_settings(config(), again);
  }

  /// Names a flag that the preset's kind does not have as a form error, before decoding calls it an unknown key.
  void check_against_preset(const Node& node, const Json& given, const Json& preset) {
    const std::string kind = kind_in(node, given);
    if (kind.empty() && !preset.is_null())
      check_flags_fit(arguments_, node, *node.alternative(preset.at("type").get<std::string>()));
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

  void check_blocks_of_others() {
    const Json& env = decoded_.at("env");
    if (env.is_null()) return;
    const bool evaluates = config().parallelism.sharded() && config().env_eval_freq > 0;
    fail(ErrorKind::kConfig, "env: {} is not supported in this version{}; leave env null.", env.get<std::string>(),
         evaluates ? " (nor is environment evaluation on a sharded run in any)" : "");
  }

  void check_variables() {
    std::vector<std::string> found;
    for (const char* name : kGuarded)
      if (environment_.variables.contains(name)) found.emplace_back(name);
    const auto acknowledged = environment_.variables.find(kAcknowledge);
    if (found.empty() || (acknowledged != environment_.variables.end() && !acknowledged->second.empty())) return;
    fail(ErrorKind::kConfig,
         "The environment sets {}, which configure another launcher and have no effect here. Unset them, say what you "
         "want with --parallelism.* and --accelerator.*, or set {}=1 to start all the same.",
         fmt::join(found, ", "), kAcknowledge);
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

  /// Lists what flags changed on a resume, and says where the stored state decides all the same.
  void compare_with_checkpoint() {
    Json stored = file_;
    const TrainConfig before = in_file(source_, [&] {
      Json decoded = decode_block(schema_, stored);
      for (const Node& node : schema_)
        if (node.kind == Node::Kind::kChoice) decoded[node.field.name] = decode_choice_by_type(node, stored);
      return config_from_decoded(decoded);
    });
    std::vector<std::pair<std::string, std::string>> old_leaves;
    std::vector<std::pair<std::string, std::string>> new_leaves;
    for (auto [json, leaves] : {std::pair{to_json(before), &old_leaves}, std::pair{to_json(config()), &new_leaves}})
      flatten(json, "", *leaves);
    flatten(to_json(before.run), "", old_leaves);
    flatten(to_json(config().run), "", new_leaves);
    for (const auto& [name, value] : new_leaves) {
      const bool flagged = std::any_of(arguments_.flags.begin(), arguments_.flags.end(), [&](const Flag& flag) {
        return flag.name == name || (name.starts_with(flag.name) && name[flag.name.size()] == '.') ||
               Flag{name, "", ""}.is_of(flag.name);
      });
      const auto old =
          std::find_if(old_leaves.begin(), old_leaves.end(), [&](const auto& leaf) { return leaf.first == name; });
      const std::string before_value = old == old_leaves.end() ? "null" : old->second;
      if (!flagged || before_value == value || name == "resume" || name == "policy.pretrained_path") continue;
      result_.overrides.push_back({name, before_value, value});
      const bool in_state =
          name.starts_with("optimizer.") && name != "optimizer.grad_clip_norm" && name != "optimizer.type";
      const bool in_scaler = name.starts_with("accelerator.grad_scaler.");
      if (in_state || in_scaler)
        result_.warnings.push_back(
            fmt::format("{}={} has no effect on a resumed run: the state of the {} in the checkpoint holds {}.", name,
                        value, in_state ? "optimizer" : "loss scaler", before_value));
    }
  }

  const policies::Registry& registry_;
  const Environment& environment_;
  const std::vector<Node> schema_;
  Arguments arguments_;
  fs::path source_;  ///< the file that was read; empty when there is none
  bool resume_ = false;
  bool automatic_ = false;  ///< resume=auto was asked for
  bool planning_ = false;   ///< nothing is written
  Json file_ = Json::object();
  std::optional<std::string> file_path_;    ///< `policy.path` of the file
  std::optional<std::string> policy_path_;  ///< the folder that the policy comes from
  Json merged_ = Json::object();
  Json decoded_;
  ParsedTrain result_;
};

}  // namespace

Environment process_environment() {
  Environment environment;
  environment.now = std::time(nullptr);
  for (const char* name : {kGuarded[0], kGuarded[1], kGuarded[2], kAcknowledge})
    if (const char* value = std::getenv(name)) environment.variables[name] = value;
  return environment;
}

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
