// One program, four layouts: on the same number of ranks they give the same bits; sharded runs are saved whole and go
// on in any layout.
#include <catch2/catch.hpp>

#include "support/run_program.hpp"

using namespace lerobot::test;

namespace {

using Words = std::vector<std::string>;

void train_ok(int ranks, const Words& arguments) {
  const Finished run = train(ranks, arguments, 120);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
}

/// Trains in the layout that `degrees` asks for, with dropout and the VAE on; gives the checkpoint of the last step.
std::filesystem::path train_layout(const TemporaryFolder& folder, const std::string& name, int ranks,
                                   const Words& degrees, const Words& extra) {
  const auto out = folder / name;
  train_ok(ranks, small_act(out) + Words{"--steps=20", "--save_freq=0", "--log_freq=1", "--policy.dropout=0.1"} +
                      degrees + extra);
  return out / "checkpoints/000020";
}

void check_same_bits(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* name : {"pretrained_model/model.safetensors", "training_state/optimizer_state.safetensors"}) {
    INFO(name << " of " << b);
    CHECK(slurp(a / name) == slurp(b / name));
  }
}

const Words kFsdp2{"--parallelism.dp_shard=2"}, kFsdp4{"--parallelism.dp_shard=4"},
    kHsdp{"--parallelism.dp_replicate=2", "--parallelism.dp_shard=2"};

}  // namespace

TEST_CASE("layouts: DDP and FSDP on two ranks give the same bits", "[layouts]") {
  for (const Words& extra :
       {Words{}, Words{"--accelerator.gradient_accumulation.steps=2"}, Words{"--optimizer.grad_clip_norm=0"},
        Words{"--accelerator.fsdp.reshard_after_forward=false"}}) {
    const TemporaryFolder folder;
    const auto ddp = train_layout(folder, "ddp", 2, {}, extra);
    check_same_bits(ddp, train_layout(folder, "fsdp", 2, kFsdp2, extra));
  }
}

TEST_CASE("layouts: DDP, FSDP and HSDP on four ranks give the same bits", "[layouts]") {
  const TemporaryFolder folder;
  const auto ddp = train_layout(folder, "ddp", 4, {}, {});
  check_same_bits(ddp, train_layout(folder, "fsdp", 4, kFsdp4, {}));
  check_same_bits(ddp, train_layout(folder, "hsdp", 4, kHsdp, {}));
  check_same_bits(ddp,
                  train_layout(folder, "by-size", 4, kFsdp4 + Words{"--accelerator.fsdp.min_num_params=2000"}, {}));
}

TEST_CASE("layouts: what a sharded run saved goes on in another layout (U4, U5)", "[layouts]") {
  const TemporaryFolder folder;
  train_ok(2, small_act(folder / "fsdp") + Words{"--steps=3", "--save_freq=3"} + kFsdp2);
  const std::string from = "--config_path=" + (folder / "fsdp/checkpoints/last/pretrained_model").string();
  // No step is left to make: what is loaded is saved again, and must be the same.
  const auto resume = [&](const std::string& name, int ranks, const Words& degrees) {
    train_ok(ranks, Words{"--resume=true", from, "--steps=4", "--output_dir=" + (folder / name).string()} + degrees);
  };
  resume("ddp", 2, {"--parallelism.dp_replicate=2", "--parallelism.dp_shard=1"});
  resume("fsdp-again", 2, {});
  check_same_bits(folder / "ddp/checkpoints/000004", folder / "fsdp-again/checkpoints/000004");
  resume("uneven", 3, {"--parallelism.dp_replicate=1", "--parallelism.dp_shard=3"});
  CHECK(std::filesystem::exists(folder / "uneven/checkpoints/000004/pretrained_model/model.safetensors"));
}

TEST_CASE("layouts: units that do not exist, or nobody named, are refused (S5, S6)", "[layouts]") {
  const TemporaryFolder folder;
  const auto refused = [&](const Words& words, const Words& fragments) {
    const Finished run = train(2, small_act(folder / "run") + kFsdp2 + words);
    INFO(run.out << run.err);
    CHECK(run.code == 1);
    for (const auto& fragment : fragments) CHECK(run.err.find(fragment) != std::string::npos);
    CHECK(count(run.err, "error: ") == 1);
    CHECK(!std::filesystem::exists(folder / "run"));
  };
  refused({"--accelerator.fsdp.wrap_modules=[\"NoSuchBlock\"]"}, {"Could not find", "NoSuchBlock", "ACTEncoderLayer"});
  refused({"--accelerator.fsdp.wrap_modules=[\"ACTEncoderLayer\"]", "--accelerator.fsdp.min_num_params=10"},
          {"mutually exclusive"});
  refused({"--accelerator.fsdp.min_num_params=0"}, {"min_num_params"});
  refused({"--checkpoint_format=dcp"}, {"checkpoint_format", "not in this version"});
}
