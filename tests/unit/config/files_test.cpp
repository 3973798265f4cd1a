#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;
using namespace lerobot::config::test;

namespace {

const Words kPolicy{"--policy.type=act", "--policy.device=cpu", "--policy.push_to_hub=false"};

Words with_file(const std::string& file, const Words& more) {
  Words words{"--config_path=" + file};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A policy folder with n_action_steps 20 of a chunk of 50.
void write_policy(const Scratch& scratch, const std::string& folder, int n_action_steps) {
  scratch.write(folder + "/config.json",
                R"({"type": "act", "device": "cpu", "chunk_size": 50, "push_to_hub": true, "repo_id": "user/p",
      "replace_final_stride_with_dilation": 0, "n_action_steps": )" +
                    std::to_string(n_action_steps) + "}");
}

}  // namespace

TEST_CASE("files: flags beat the file, the file beats defaults", "[files]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("run.json", R"({"dataset": {"repo_id": "u/d"}, "steps": 5, "rename_map": {}})");
  CHECK(parse_bare(with_file(file, kPolicy)).config.steps == 5);  // U053
  Words seven = with_file(file, kPolicy);
  seven.push_back("--steps=7");
  CHECK(parse_bare(seven).config.steps == 7);
  CHECK(parse_bare(with_file(file, kPolicy)).config.dataset.repo_id == "u/d");
}

TEST_CASE("files: YAML is read like JSON, and its words are not guessed at", "[files]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("run.yaml",
                    "dataset:\n  repo_id: u/d\n  episodes: [0, 1]\nsteps: 1_000\njob_name: 1.50\n"
                    "accelerator:\n  mixed_precision: no\npolicy: {type: act, device: cpu, push_to_hub: off}\n");
  const TrainConfig config = parse_bare({"--config_path=" + file}).config;
  CHECK(config.steps == 1000);
  CHECK(config.job_name == "1.50");
  CHECK(config.accelerator.mixed_precision == MixedPrecision::kNo);
  CHECK(config.dataset.episodes->size() == 2);
}

TEST_CASE("files: maps merge, lists are replaced", "[files]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("run.json", R"({"dataset": {"repo_id": "u/d", "episodes": [1, 2]}, "rename_map": {"a": "b"},
      "policy": {"type": "act", "device": "cpu", "push_to_hub": false, "pretrained_path": "x"}})");
  const TrainConfig config =
      parse_bare({"--config_path=" + file, "--rename_map={\"c\":\"d\"}", "--dataset.episodes=[3]"}).config;
  CHECK(config.rename_map == std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"c", "d"}});
  CHECK(config.dataset.episodes == std::vector<std::int64_t>{3});
}

TEST_CASE("files: what is wrong in a file is named", "[files]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& text) {
    return refusal_bare(with_file(scratch.write("run.json", text), kPolicy));
  };
  check_refused(refused(R"({"dataset": {"repo_id": "u/d"}, "bogus": 1})"), 1,
                {"bogus", "not valid", "run.json"});                                    // U051
  check_refused(refused(R"({"steps": 5})"), 1, {"Missing required field", "dataset"});  // U052
  check_refused(refused(R"({"dataset": {"repo_id": "u/d"}, "steps": 5.0})"), 1, {"`steps`", "into an int"});
  check_refused(refused(R"({"dataset": 5})"), 1, {"dataset"});
  check_refused(refused(R"([1])"), 1, {"run.json"});
  check_refused(refused(R"({"dataset": {"repo_id": ["a", "b"]}})"), 1, {"dataset.repo_id"});
  check_refused(refusal_bare(with_file(
                    scratch.write("kind.json", R"({"dataset": {"repo_id": "u/d"}, "policy": {"type": "nope"}})"), {})),
                1, {"nope", "act"});
  // A flag's own mistake is not blamed on the file.
  Words wrong_flag = with_file(scratch.write("run.json", R"({"dataset": {"repo_id": "u/d"}})"), kPolicy);
  wrong_flag.push_back("--steps=abc");
  CHECK(refusal_bare(wrong_flag).message == "`steps`: Couldn't parse 'abc' into an int");
  check_refused(refusal_bare(with_file(scratch / "absent.json", kPolicy)), 1,
                {scratch / "absent.json", "no such file or directory, hub download is not available"});
  fs::create_directories(scratch / "folder");
  check_refused(refusal_bare(with_file(scratch / "folder", kPolicy)), 1, {"train_config.json", scratch / "folder"});
}

TEST_CASE("files: files that must be refused", "[files]") {
  const fs::path malformed = kData / "malformed";
  check_refused(refusal_bare(with_file((malformed / "train_config_truncated/train_config.json").string(), {})), 1,
                {"train_config_truncated", "line"});
  check_refused(refusal_bare({"--dataset.repo_id=u/d", "--policy.path=" + (malformed / "config_wrong_types").string()}),
                1, {"chunk_size`", "Couldn't parse 'ten' into an int"});
}

TEST_CASE("files: a file without the newer keys takes their defaults (U029)", "[files]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("run.json", R"({"dataset": {"repo_id": "u/d"}, "use_rabc": false, "rabc_kappa": 0.01})");
  const TrainConfig config = parse_bare(with_file(file, kPolicy)).config;
  CHECK(config.parallelism == ParallelismConfig{});
  CHECK(config.accelerator == AcceleratorConfig{});
  CHECK(config.checkpoint_format == CheckpointFormat::kSafetensors);
  const std::string weighted =
      scratch.write("old.json", R"({"dataset": {"repo_id": "u/d"}, "use_rabc": true, "rabc_kappa": 0.01})");
  check_refused(refusal_bare(with_file(weighted, kPolicy)), 1, {"sample_weighting", "not supported", "rabc"});
}

TEST_CASE("files: policy.path loads a folder, flags on top", "[files]") {
  const Scratch scratch;
  write_policy(scratch, "D", 20);
  const Words base{"--dataset.repo_id=u/d", "--policy.path=" + scratch / "D"};
  Words words = base;
  words.push_back("--policy.n_action_steps=30");
  const PolicyConfig policy = parse_bare(words).config.policy;
  CHECK(policy.settings.at("chunk_size") == 50);
  CHECK(policy.settings.at("n_action_steps") == 30);
  CHECK(policy.settings.at("replace_final_stride_with_dilation") == false);
  CHECK(policy.pretrained_path() == scratch / "D");
  CHECK(policy.repo_id() == "user/p");
  words = base;
  words.push_back("--policy.type=act");
  check_refused(refusal_bare(words), 1, {"Cannot specify both", "--policy.path", "--policy.type"});  // U059
  scratch.write("untyped/config.json", "{\"chunk_size\": 3}");
  check_refused(refusal_bare({"--dataset.repo_id=u/d", "--policy.path=" + scratch / "untyped"}), 1, {"type"});  // U060
  scratch.write("other/config.json", "{\"type\": \"pi0\"}");
  check_refused(refusal_bare({"--dataset.repo_id=u/d", "--policy.path=" + scratch / "other"}), 1, {"pi0", "act"});
  check_refused(refusal_bare({"--dataset.repo_id=u/d", "--policy.path=" + scratch / "none"}), 1,
                {"config.json", scratch / "none"});
}

TEST_CASE("files: a file may name the policy's folder, with overrides beside it", "[files]") {
  const Scratch scratch;
  write_policy(scratch, "D", 20);
  write_policy(scratch, "D2", 40);
  const auto parsed = [&](const std::string& policy, const Words& more = {}) {
    const std::string file = scratch.write("run.json", R"({"dataset": {"repo_id": "u/d"}, "policy": )" + policy + "}");
    return parse_bare(with_file(file, more)).config.policy;
  };
  const std::string d = "\"path\": \"" + scratch / "D" + "\"";
  CHECK(parsed("{\"type\": \"act\", " + d + ", \"n_action_steps\": 10}").settings.at("n_action_steps") == 10);  // U055
  const PolicyConfig second =
      parsed("{" + d + ", \"n_action_steps\": 10}", {"--policy.path=" + scratch / "D2"});  // U056
  CHECK(second.pretrained_path() == scratch / "D2");
  CHECK(second.settings.at("n_action_steps") == 10);
  CHECK(parsed("{" + d + "}").settings.at("n_action_steps") == 20);  // U057
  const PolicyConfig quiet =
      parsed("{" + d + ", \"push_to_hub\": false, \"temporal_ensemble_coeff\": null, \"tags\": [\"a\"]}");  // U058
  CHECK_FALSE(quiet.push_to_hub());
  CHECK(quiet.settings.at("temporal_ensemble_coeff").is_null());
  CHECK(quiet.settings.at("tags") == Json({"a"}));
  CHECK(parsed("{" + d + ", \"n_action_steps\": 10}", {"--policy.n_action_steps=11"}).settings.at("n_action_steps") ==
        11);
  CHECK(parsed("{\"type\": \"nope\", " + d + "}").type() == "act");
}
