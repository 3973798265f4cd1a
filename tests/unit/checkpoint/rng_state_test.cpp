#include "lerobot/checkpoint/rng_state.hpp"

#include <catch2/catch.hpp>

#include "lerobot/comm/in_process.hpp"
#include "lerobot/core/error.hpp"
#include "support.hpp"

using namespace lerobot;
using namespace lerobot::test;

namespace {

const fs::path kRng = LEROBOT_TEST_DATA "/rng/rng_state.safetensors";

// The next random() of Python, from its words: 53 bits of two tempered words.
struct Twister {
  std::vector<std::uint32_t> words;
  std::size_t position;
  explicit Twister(const std::vector<std::int64_t>& state, std::int64_t at)
      : words(state.begin(), state.begin() + 624), position(static_cast<std::size_t>(at)) {}
  std::uint32_t next() {
    if (position >= 624) {
      for (std::size_t k = 0; k < 624; ++k) {
        const std::uint32_t y = (words[k] & 0x80000000U) | (words[(k + 1) % 624] & 0x7fffffffU);
        words[k] = words[(k + 397) % 624] ^ (y >> 1) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
      }
      position = 0;
    }
    std::uint32_t y = words[position++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    return y ^ (y >> 18);
  }
  double random() {
    const double a = next() >> 5, b = next() >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;
  }
};

at::Tensor draws() { return at::cat({at::randn({5}), at::rand({3}), at::randn({20})}); }

}  // namespace

TEST_CASE("rng_state: torch goes on with the recorded draws after loading", "[rng_state][unit]") {
  const auto recorded = Json::parse(slurp(LEROBOT_TEST_DATA "/rng/rng_state.json")).at("next_values_after_loading");
  const auto state = checkpoint::read_rng_state(kRng);
  checkpoint::restore_torch_rng(state.torch, {}, kRng);
  CHECK(same_bits(checkpoint::capture_torch_rng().cpu, state.torch));
  // The recording drew one after the other, without going back to the state.
  const auto check = [&](const char* key, const at::Tensor& got) {
    INFO(key);
    const auto expected = recorded.at(key).get<std::vector<double>>();
    REQUIRE(got.numel() == static_cast<std::int64_t>(expected.size()));
    for (std::int64_t i = 0; i < got.numel(); ++i)
      CHECK(got[i].item<double>() == static_cast<double>(static_cast<float>(expected[static_cast<std::size_t>(i)])));
  };
  const auto size_of = [&](const char* key) { return static_cast<std::int64_t>(recorded.at(key).size()); };
  check("torch_rand", at::rand({size_of("torch_rand")}));
  check("torch_randn", at::randn({size_of("torch_randn")}));
  check("torch_randint_1000", at::randint(1000, {size_of("torch_randint_1000")}));
  // The words of Python and NumPy are the ones that their next draws come from.
  Twister python(state.python, state.python[624]);
  for (const auto& value : recorded.at("python_random")) CHECK(python.random() == value.get<double>());
  Twister numpy(state.numpy, state.numpy_position);
  for (const auto& value : recorded.at("numpy_random_sample")) CHECK(numpy.random() == value.get<double>());
}

TEST_CASE("rng_state: a file is written back byte for byte", "[rng_state][unit]") {
  const TemporaryFolder folder;
  for (const fs::path& path : {kRng, kGolden / "single/run/checkpoints/000006/training_state/rng_state.safetensors"}) {
    checkpoint::write_rng_state(folder.path / "rng", checkpoint::read_rng_state(path));
    CHECK(slurp(folder.path / "rng") == slurp(path));
  }
}

TEST_CASE("rng_state: a fresh run has the words that Python and NumPy would seed", "[rng_state][unit]") {
  checkpoint::RngState state;
  checkpoint::seed_python_and_numpy(state, 1000);
  REQUIRE(state.python.size() == 625);
  CHECK(std::vector(state.python.begin(), state.python.begin() + 3) ==
        std::vector<std::int64_t>{2147483648, 3322676526, 3034739726});
  CHECK(state.python.back() == 624);
  CHECK(std::vector(state.numpy.begin(), state.numpy.begin() + 3) ==
        std::vector<std::int64_t>{1000, 4252021385, 1724402292});
  CHECK(state.numpy_position == 624);
  // random.seed(2**40 + 5); random.random() takes a key of two words
  checkpoint::seed_python_and_numpy(state, (std::uint64_t{1} << 40) + 5);
  CHECK(state.python[0] == 2147483648);
  CHECK(state.python[1] != 3322676526);
}

TEST_CASE("rng_state: damaged entries are refused by name", "[rng_state][unit]") {
  const TemporaryFolder folder;
  auto state = checkpoint::read_rng_state(kRng);
  state.torch = state.torch.slice(0, 0, 100);
  checkpoint::write_rng_state(folder.path / "short", state);
  CHECK_THROWS_WITH(checkpoint::read_rng_state(folder.path / "short"),
                    Catch::Contains("torch_rng_state") && Catch::Contains("5056"));
  CHECK_THROWS_AS(checkpoint::restore_torch_rng(at::zeros({100}, at::kByte), {}, "f"), Error);
  CHECK_THROWS_AS(checkpoint::restore_torch_rng(at::zeros({5056}), {}, "f"), Error);
}

TEST_CASE("rng_state: every rank, seed and step has a stream of its own, the same each time", "[rng_state][unit]") {
  std::vector<at::Tensor> seen;
  const auto add = [&](std::uint64_t seed, std::int64_t rank, std::optional<std::int64_t> step) {
    torch::manual_seed(0);
    (void)at::randn({1});  // a cached normal must not leak into the new stream
    checkpoint::seed_rank_stream(seed, rank, step);
    const at::Tensor first = draws();
    checkpoint::seed_rank_stream(seed, rank, step);
    REQUIRE(same_bits(draws(), first));
    for (const auto& other : seen) REQUIRE_FALSE(same_bits(other, first));
    seen.push_back(first);
  };
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{1000}})
    for (const std::int64_t rank : {0, 1, 2, 7}) {
      add(seed, rank, std::nullopt);
      add(seed, rank, 0);
      add(seed, rank, 5);
    }
  torch::manual_seed(1000);
  CHECK_FALSE(same_bits(draws(), seen[36]));
  CHECK(std::abs(at::cat(seen).mean().item<double>()) < 0.2);
}

TEST_CASE("rng_state: a stream survives capture and restore", "[rng_state][unit]") {
  checkpoint::seed_rank_stream(3, 1);
  (void)at::randn({3});
  const auto states = checkpoint::capture_torch_rng();
  const at::Tensor expected = draws();
  checkpoint::restore_torch_rng(states.cpu, states.cuda, "f");
  CHECK(same_bits(draws(), expected));
}

TEST_CASE("rng_state: the states of all ranks are gathered in rank order and kept in one file", "[rng_state][unit]") {
  const TemporaryFolder folder;
  comm::run_ranks(3, [&](const comm::ProcessGroupPtr& world, int rank) {
    checkpoint::TorchRngStates own;
    own.cpu = at::full({checkpoint::kTorchStateBytes}, rank + 1, at::kByte);
    own.window_start_cpu = at::full({checkpoint::kTorchStateBytes}, rank + 101, at::kByte);
    const auto all = checkpoint::gather_torch_rng(own, world);
    if (rank == 0) checkpoint::write_rank_rng_states(folder.path / "ranks", all);
    if (rank != 0 && all.cpu.defined()) throw std::logic_error("only rank 0 gets the states");
  });
  const auto states = checkpoint::read_rank_rng_states(folder.path / "ranks");
  REQUIRE(states);
  CHECK(states->cpu.sizes() == at::IntArrayRef{3, 5056});
  CHECK(states->cpu[2][17].item<int>() == 3);
  CHECK(states->window_start_cpu[1][0].item<int>() == 102);
  CHECK_FALSE(states->cuda.defined());
  CHECK_FALSE(checkpoint::read_rank_rng_states(folder.path / "nothing"));
}
