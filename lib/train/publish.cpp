#include "publish.hpp"

#include <filesystem>
#include <set>

#include "lerobot/core/error.hpp"
#include "lerobot/formats/atomic_file.hpp"

namespace lerobot::train {
namespace fs = std::filesystem;
namespace {

std::string shape_text(const Json& shape) {
  std::string text;
  for (const auto& size : shape) text += (text.empty() ? "" : "x") + size.dump();
  return text;
}

/// One table row per feature: name, type, shape.
std::string feature_table(const Json& inputs, const Json& outputs) {
  std::string table = "| | name | type | shape |\n|---|---|---|---|\n";
  for (const auto& [role, features] : {std::pair{"input", &inputs}, std::pair{"output", &outputs}})
    for (const auto& [name, feature] : features->items())
      table += fmt::format("| {} | `{}` | {} | {} |\n", role, name, feature.at("type").get<std::string>(),
                           shape_text(feature.at("shape")));
  return table;
}

std::string describe(const std::string& type) {
  if (type == "act")
    return "Action Chunking with Transformers: from the robot's present state and pictures, a transformer predicts a "
           "whole "
           "chunk of coming actions at once; a variational encoder absorbs the variety of the demonstrations.";
  return fmt::format("A policy of type `{}`.", type);
}

std::string cameras(const std::vector<std::string>& keys) {
  std::string text;
  for (const auto& key : keys) text += (text.empty() ? "" : ", ") + key.substr(key.rfind('.') + 1);
  return text;
}

}  // namespace

std::string model_card(const Run& run) {
  const Json& policy = run.config.policy.settings;
  const std::string type = run.config.policy.type();
  const auto text_of = [&](const char* key, const std::string& otherwise) {
    return policy.at(key).is_null() ? otherwise : policy.at(key).get<std::string>();
  };
  std::set<std::string> tags{"robotics", "lerobot", type};
  if (!policy.at("tags").is_null())
    for (const auto& tag : policy.at("tags")) tags.insert(tag.get<std::string>());
  const std::string license = text_of("license", "apache-2.0");
  const data::DatasetInfo& info = run.train_set->metadata().info;

  std::string card = fmt::format(
      "---\nlibrary_name: lerobot\npipeline_tag: robotics\nlicense: {}\nmodel_name: {}\ndatasets: {}\ntags:\n", license,
      type, run.config.dataset.repo_id);
  for (const auto& tag : tags) card += "- " + tag + "\n";
  card += fmt::format("---\n\n# Model Card for {}\n\n{}\n\n- License: {}\n", type, describe(type), license);
  if (!info.robot_type.empty()) card += fmt::format("- Robot: {}\n", info.robot_type);
  if (!run.camera_keys.empty()) card += fmt::format("- Cameras: {}\n", cameras(run.camera_keys));
  card += fmt::format(
      "\n## Features\n\n{}\n## Dataset\n\n- Repository: {}\n- Episodes: {}\n- Frames: {}\n- Frames per second: {}\n",
      feature_table(policy.at("input_features"), policy.at("output_features")), run.config.dataset.repo_id,
      run.train_episodes, run.train_frames, info.fps);
  for (const auto& task : run.train_set->metadata().tasks) card += fmt::format("- Task: {}\n", task);
  card += fmt::format(
      "\n## Training\n\n| setting | value |\n|---|---|\n| steps | {} |\n| batch size | {} |\n| optimizer | {} |\n| "
      "learning rate | {} |\n",
      run.config.steps, run.config.batch_size, config::text(run.config.optimizer->kind), run.config.optimizer->lr);
  if (run.config.seed) card += fmt::format("| seed | {} |\n", *run.config.seed);
  return card;
}

void stage_for_hub(const Run& run, const fs::path& pretrained_model) {
  const std::string repo = run.config.policy.repo_id().value_or("");
  const fs::path target = fs::path(*run.config.output_dir) / "hub" / repo;
  const fs::path work = target.parent_path() / (".incomplete-" + target.filename().string());
  try {
    fs::remove_all(work);
    fs::create_directories(work);
    for (const auto& entry : fs::directory_iterator(pretrained_model)) {
      const auto extension = entry.path().extension();
      if (entry.is_regular_file() && (extension == ".json" || extension == ".safetensors"))
        fs::copy_file(entry.path(), work / entry.path().filename());
    }
    formats::write_file_atomically(work / "README.md", model_card(run));
    fs::remove_all(target);
    fs::rename(work, target);
  } catch (const fs::filesystem_error& error) {
    fail(ErrorKind::kConfig, "publish: cannot stage {}: {}.", target.string(), error.what());
  }
  run.logger.info("Model staged for {} at {}", repo, target.string());
  run.logger.warning(
      "nothing was uploaded: this version publishes to a local folder only; any hub client can upload {}",
      target.string());
}

}  // namespace lerobot::train
