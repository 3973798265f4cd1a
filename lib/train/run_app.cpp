#include "lerobot/train/run_app.hpp"

#include <torch/torch.h>

#include <cstdio>
#include <filesystem>

#include "lerobot/comm/comm.hpp"
#include "lerobot/config/config.hpp"
#include "lerobot/core/error.hpp"
#include "lerobot/data/data.hpp"
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/json.hpp"
#include "lerobot/train/trainer.hpp"

namespace lerobot::train {
namespace {

/// What this program does of what is documented. A feature's flag is refused until its line says true.
config::BuiltFeatures built_features() {
  config::BuiltFeatures built;
  built.sharding = true;
  return built;
}

config::Devices devices() {
  config::Devices found;
  found.num_cuda = static_cast<int>(torch::cuda::device_count());
  found.mps = torch::mps::is_available();
  return found;
}

/// The outcome of a run, in its folder where there is one: mpirun hides codes of ranks.
void write_outcome(const std::string& output_dir, int code, const std::string& message) {
  if (output_dir.empty() || !std::filesystem::is_directory(output_dir)) return;
  const Json outcome{{"exit_code", code}, {"message", message}};
  try {
    formats::write_file_atomically(std::filesystem::path(output_dir) / "exit.json",
                                   formats::dump_python(outcome, 4, false));
  } catch (const Error&) {  // the run's own outcome stands; a full disk must not hide it
  }
}

void say_error(const std::string& message, int rank = 0) {
  const std::string where = rank == 0 ? "" : fmt::format("[rank {}] ", rank);
  const std::string line = fmt::format("error: {}{}\n", where, message);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

/// Takes LibTorch's warnings: the advice of c10d to switch find_unused_parameters off would stand in every log, since
/// true is LeRobot's default; the others pass, from rank 0 alone.
class QuietWarnings final : public c10::WarningHandler {
 public:
  explicit QuietWarnings(int rank) : logger_(rank) {}
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("find_unused_parameters=True was specified") == std::string::npos)
      logger_.warning("{}", warning.msg());
  }

 private:
  log::Logger logger_;
};

bool asks_for_help(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--help" || std::string_view(argv[i]) == "-h") return true;
  return false;
}

/// Everything that depends on the machine, equal on all ranks.
config::Environment environment_of(comm::MpiEnvironment& mpi, c10d::ProcessGroup& world) {
  config::Environment environment = config::process_environment();
  environment.world_size = mpi.world_size();
  environment.devices = devices();
  environment.built = built_features();
  environment.image_transform_types = data::image_transform_types();
  environment.now = static_cast<std::time_t>(std::stoll(comm::broadcast_text(world, std::to_string(environment.now))));
  return environment;
}

int train(int argc, char** argv, const policies::Registry& registry, comm::MpiEnvironment& mpi,
          std::string& output_dir) {
  // The time-out is known only after parsing; parsing itself is agreed on in the default one.
  const comm::ProcessGroupPtr world = mpi.world();
  log::Logger logger(mpi.rank());
  const config::Environment environment = environment_of(mpi, *world);
  config::ParsedTrain parsed;
  comm::on_every_rank(*world, ErrorKind::kConfig, "configuration",
                      [&] { parsed = config::parse_train(argc, argv, registry, environment); });
  const std::string folder = *parsed.config.output_dir;
  Trainer trainer(std::move(parsed), {.world = world, .local_rank = mpi.local_rank(), .local_size = mpi.local_size()},
                  registry, logger);
  output_dir = folder;
  trainer.run();
  return 0;
}

}  // namespace

int run_app(int argc, char** argv, const policies::Registry& registry) {
  if (asks_for_help(argc, argv)) {
    try {
      config::Environment environment = config::process_environment();
      environment.built = built_features();
      const std::string help = config::parse_train(argc, argv, registry, environment).help;
      std::fwrite(help.data(), 1, help.size(), stdout);
      return 0;
    } catch (const Error& error) {
      say_error(error.what());
      return exit_code(error.kind());
    }
  }
  comm::MpiEnvironment mpi(argc, argv);
  QuietWarnings warnings(mpi.rank());
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  std::string output_dir;
  try {
    const int code = train(argc, argv, registry, mpi, output_dir);
    if (mpi.rank() == 0) write_outcome(output_dir, code, "done");
    return code;
  } catch (const comm::AgreedError& error) {  // every rank is here
    if (mpi.rank() == 0) {
      say_error(error.what());
      write_outcome(output_dir, exit_code(error.kind()), error.what());
    }
    return exit_code(error.kind());
  } catch (const Error& error) {  // the other ranks do not know
    say_error(error.what(), mpi.rank());
    write_outcome(output_dir, exit_code(error.kind()), error.what());
    mpi.abort(exit_code(error.kind()));
  } catch (const c10::Error& error) {  // LibTorch's own: its first line, without addresses of frames
    say_error(error.what_without_backtrace(), mpi.rank());
    write_outcome(output_dir, 1, error.what_without_backtrace());
    mpi.abort(1);
  } catch (const std::exception& error) {
    say_error(error.what(), mpi.rank());
    write_outcome(output_dir, 1, error.what());
    mpi.abort(1);
  }
}

}  // namespace lerobot::train
