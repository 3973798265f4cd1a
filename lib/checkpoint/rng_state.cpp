#include "lerobot/checkpoint/rng_state.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <array>
#include <cstring>
#include <mutex>
#include <span>

#include "checkpoint/tensor_file.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::checkpoint {

namespace {

using Words = std::array<std::uint32_t, kTwisterWords>;

// Reference seeding of MT19937 from one number (Matsumoto and Nishimura, 2002).
Words twister_from_number(std::uint32_t seed) {
  Words words;
  words[0] = seed;
  for (std::uint32_t i = 1; i < words.size(); ++i) words[i] = 1812433253U * (words[i - 1] ^ (words[i - 1] >> 30)) + i;
  return words;
}

// Reference seeding of MT19937 from an array of numbers.
Words twister_from_array(std::span<const std::uint32_t> key) {
  Words words = twister_from_number(19650218U);
  std::size_t i = 1, j = 0;
  const auto next = [&] {
    if (++i < words.size()) return;
    words[0] = words.back();
    i = 1;
  };
  for (std::size_t k = std::max(words.size(), key.size()); k > 0; --k) {
    words[i] = (words[i] ^ ((words[i - 1] ^ (words[i - 1] >> 30)) * 1664525U)) + key[j] + static_cast<std::uint32_t>(j);
    next();
    j = j + 1 < key.size() ? j + 1 : 0;
  }
  for (std::size_t k = words.size() - 1; k > 0; --k) {
    words[i] = (words[i] ^ ((words[i - 1] ^ (words[i - 1] >> 30)) * 1566083941U)) - static_cast<std::uint32_t>(i);
    next();
  }
  words[0] = 0x80000000U;
  return words;
}

std::array<std::uint32_t, 2> halves(std::uint64_t value) {
  return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}

// The finaliser of splitmix64: every input bit changes every output bit.
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

at::Generator& mutable_generator(const at::Generator& generator) { return const_cast<at::Generator&>(generator); }

at::Generator cuda_generator() { return at::globalContext().defaultGenerator(at::Device(at::kCUDA, -1)); }

at::Tensor state_of(const at::Generator& generator) {
  const std::lock_guard lock(mutable_generator(generator).mutex());
  return generator.get_state();
}

void set_state(const at::Generator& generator, const at::Tensor& state, const std::filesystem::path& where) {
  if (state.scalar_type() != at::kByte || state.dim() != 1)
    fail(ErrorKind::kCheckpoint, "{}: a generator state has dtype {} and {} dimensions, expected bytes in one.",
         where.string(), c10::toString(state.scalar_type()), state.dim());
  const std::lock_guard lock(mutable_generator(generator).mutex());
  try {
    mutable_generator(generator).set_state(state.clone());
  } catch (const c10::Error& error) {
    fail(ErrorKind::kCheckpoint, "{}: {} bytes are not the state of a {} generator: {}", where.string(), state.numel(),
         generator.device().str(), error.what_without_backtrace());
  }
}

std::vector<std::int64_t> words_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<std::int64_t>(), tensor.const_data_ptr<std::int64_t>() + tensor.numel()};
}

std::int64_t word_of(const at::Tensor& tensor) { return tensor.item<std::int64_t>(); }

at::Tensor tensor_of(const std::vector<std::int64_t>& words) { return at::tensor(words, at::kLong); }

}  // namespace

void seed_python_and_numpy(RngState& state, std::uint64_t seed) {
  const auto key = halves(seed);
  const Words python = twister_from_array(std::span(key).first(key[1] != 0 ? 2 : 1));
  state.python_version = 3;
  state.python.assign(python.begin(), python.end());
  state.python.push_back(static_cast<std::int64_t>(kTwisterWords));
  const Words numpy = twister_from_number(key[0]);
  state.numpy.assign(numpy.begin(), numpy.end());
  state.numpy_position = static_cast<std::int64_t>(kTwisterWords);
  state.numpy_has_gauss = 0;
  state.numpy_cached_gaussian = 0.0F;
}

RngState read_rng_state(const std::filesystem::path& path) {
  const TensorFile file(path);
  const auto entry = [&](std::string_view name, at::ScalarType dtype, std::int64_t numel) {
    const at::Tensor tensor = file.read(name);
    if (tensor.scalar_type() != dtype || tensor.dim() != 1 || tensor.numel() != numel)
      fail(ErrorKind::kCheckpoint, "{}: \"{}\" is {} of {} elements in {} dimensions, expected {} [{}].", path.string(),
           name, c10::toString(tensor.scalar_type()), tensor.numel(), tensor.dim(), c10::toString(dtype), numel);
    return tensor;
  };
  constexpr auto kWords = static_cast<std::int64_t>(kTwisterWords);
  RngState state;
  state.python_version = word_of(entry("py_rng_version", at::kLong, 1));
  state.python = words_of(entry("py_rng_state", at::kLong, kWords + 1));
  state.numpy = words_of(entry("np_rng_state_values", at::kLong, kWords));
  state.numpy_position = word_of(entry("np_rng_state_index", at::kLong, 1));
  state.numpy_has_gauss = word_of(entry("np_rng_has_gauss", at::kLong, 1));
  state.numpy_cached_gaussian = entry("np_rng_cached_gaussian", at::kFloat, 1).item<float>();
  state.torch = entry("torch_rng_state", at::kByte, kTorchStateBytes);
  if (file.has("torch_cuda_rng_state")) state.torch_cuda = file.read("torch_cuda_rng_state");
  if (file.has("torch_mps_rng_state")) state.torch_mps = file.read("torch_mps_rng_state");
  return state;
}

void write_rng_state(const std::filesystem::path& path, const RngState& state) {
  NamedTensors tensors{
      {"py_rng_version", tensor_of({state.python_version})},
      {"py_rng_state", tensor_of(state.python)},
      {"np_rng_state_values", tensor_of(state.numpy)},
      {"np_rng_state_index", tensor_of({state.numpy_position})},
      {"np_rng_has_gauss", tensor_of({state.numpy_has_gauss})},
      {"np_rng_cached_gaussian", at::full({1}, state.numpy_cached_gaussian, at::kFloat)},
      {"torch_rng_state", state.torch},
  };
  if (state.torch_cuda.defined()) tensors.emplace_back("torch_cuda_rng_state", state.torch_cuda);
  if (state.torch_mps.defined()) tensors.emplace_back("torch_mps_rng_state", state.torch_mps);
  write_tensor_file(path, tensors);
}

TorchRngStates capture_torch_rng() {
  TorchRngStates states;
  states.cpu = state_of(at::detail::getDefaultCPUGenerator());
  if (at::getNumGPUs() > 0) states.cuda = state_of(cuda_generator());
  return states;
}

void restore_torch_rng(const at::Tensor& cpu, const at::Tensor& cuda, const std::filesystem::path& where) {
  if (cpu.defined()) set_state(at::detail::getDefaultCPUGenerator(), cpu, where);
  if (cuda.defined() && at::hasCUDA()) set_state(cuda_generator(), cuda, where);
}

void seed_rank_stream(std::uint64_t seed, std::int64_t dp_rank, std::optional<std::int64_t> step) {
  // The last word keeps the three uses apart: a plain seed never equals a derived one.
  const auto s = halves(seed), r = halves(static_cast<std::uint64_t>(dp_rank));
  const auto t = halves(static_cast<std::uint64_t>(step.value_or(0)));
  const Words words = twister_from_array(std::array{s[0], s[1], r[0], r[1], t[0], t[1], step ? 2U : 1U});

  at::mt19937_data_pod pod = at::mt19937().data();
  pod.seed_ =
      mixed(mixed(mixed(seed) + static_cast<std::uint64_t>(dp_rank)) + static_cast<std::uint64_t>(step.value_or(-1)));
  pod.seeded_ = true;
  pod.left_ = 1;  // all words are used up: the next draw makes new ones
  pod.next_ = 0;
  std::copy(words.begin(), words.end(), pod.state_.begin());
  at::mt19937 engine;
  engine.set_data(pod);
  const at::Generator& generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(mutable_generator(generator).mutex());
  auto* impl = at::check_generator<at::CPUGeneratorImpl>(generator);
  impl->set_engine(engine);
  impl->set_next_float_normal_sample(std::nullopt);
  impl->set_next_double_normal_sample(std::nullopt);
  if (at::getNumGPUs() > 0) {
    at::Generator cuda = cuda_generator();
    const std::lock_guard cuda_lock(cuda.mutex());
    cuda.set_current_seed(pod.seed_);
  }
}

}  // namespace lerobot::checkpoint
