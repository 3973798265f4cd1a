#include "lerobot/config/schema.hpp"

#include <regex>
#include <set>

#include "support.hpp"

using namespace lerobot;
using namespace lerobot::config;

TEST_CASE("--help: has every flag that LeRobot's help has, except what this product refuses", "[schema]") {
  const std::string ours = test::parse_bare({"--help", "--policy.type=act"}).help;
  const std::string theirs = test::slurp(test::kData / "cli" / "help_lerobot_train.txt");
  // Short names of nested blocks, and blocks that must be null here.
  const std::set<std::string> absent{"context_parallel",
                                     "gradient_accumulation",
                                     "fsdp",
                                     "ddp",
                                     "compile",
                                     "activation_checkpointing",
                                     "image_transforms",
                                     "reward_model",
                                     "sample_weighting",
                                     "env",
                                     "dataset",
                                     "policy",
                                     "optimizer",
                                     "scheduler",
                                     "parallelism",
                                     "accelerator",
                                     "eval",
                                     "ema",
                                     "wandb",
                                     "peft",
                                     "job"};
  const std::regex flag("\\n +--([a-z_0-9]+(\\.[a-z_0-9]+)*) ");
  int seen = 0;
  for (std::sregex_iterator it(theirs.begin(), theirs.end(), flag), end; it != end; ++it) {
    const std::string name = (*it)[1];
    if (absent.contains(name) || name.starts_with("env.") || name.starts_with("reward_model.") ||
        name.starts_with("sample_weighting."))
      continue;
    CAPTURE(name);
    CHECK(ours.find("--" + name + ' ') != std::string::npos);
    ++seen;
  }
  CHECK(seen > 90);
}

TEST_CASE("--help: shows types, defaults and the settings of the chosen kinds", "[schema]") {
  const std::string help = test::parse_bare({"--help", "--policy.type=act", "--optimizer.type=sgd"}).help;
  CHECK_THAT(help, Catch::Contains("--policy.chunk_size int") && Catch::Contains("(default: 100)"));
  CHECK_THAT(help, Catch::Contains("--accelerator.mixed_precision {no,fp16,bf16}"));
  CHECK_THAT(help, Catch::Contains("--dataset.episodes list of int or null"));
  CHECK_THAT(help, Catch::Contains("--optimizer.momentum") && !Catch::Contains("--optimizer.eps"));
  CHECK_THAT(help, Catch::Contains("--timeout_s") && Catch::Contains("--on_nonfinite") && Catch::Contains("--plan"));
  CHECK_THAT(help, !Catch::Contains("--checkpoint_path"));
  CHECK_THAT(test::parse_bare({"-h"}).help, !Catch::Contains("--policy.chunk_size"));
}

TEST_CASE("schema: every flag has one line of help", "[schema]") {
  const auto check = [](const auto& self, const std::vector<Node>& nodes) -> void {
    for (const Node& node : nodes) {
      CAPTURE(node.field.name);
      CHECK_FALSE(node.field.help.empty());
      self(self, node.children);
      for (const Alternative& alternative : node.alternatives)
        for (const Field& field : alternative.fields) CHECK_FALSE(field.help.empty());
    }
  };
  check(check, train_schema(test::registry()));
}

TEST_CASE("schema: every default decodes to itself", "[schema]") {
  // Settings without a default aside, an empty file gives the config that TrainConfig{} is.
  Json tokens{{"dataset", {{"repo_id", "\"user/ds\""}}}};
  const Json decoded = decode_block(train_schema(test::registry()), tokens);
  TrainConfig expected;
  expected.dataset.repo_id = "user/ds";
  CHECK(train_config_from_json({{"dataset", {{"repo_id", "user/ds"}}}}, test::registry(), "x.json") == expected);
  CHECK(
      decoded.at("accelerator").at("grad_scaler") ==
      Json::parse(R"({"init_scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000})"));
}

TEST_CASE("nearest_name: finds misspellings and nothing far-fetched", "[schema]") {
  const std::vector<std::string> names{"steps", "save_freq", "policy.chunk_size"};
  CHECK(nearest_name("step", names) == "steps");
  CHECK(nearest_name("policy.chunksize", names) == "policy.chunk_size");
  CHECK(nearest_name("unrelated_word", names).empty());
}
