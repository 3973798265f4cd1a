#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lerobot/comm/process_group.hpp"

namespace lerobot::checkpoint {

/// Bytes of torch's CPU generator in a file, and Mersenne-Twister words of Python's and NumPy's.
inline constexpr std::int64_t kTorchStateBytes = 5056;
inline constexpr std::size_t kTwisterWords = 624;

/// Content of rng_state.safetensors.
///
/// A C++ run draws from torch's generators only. Python's and NumPy's are seeded or carried through, so that LeRobot
/// (Python) can resume from what we write.
struct RngState {
  std::int64_t python_version = 3;
  std::vector<std::int64_t> python;  ///< 624 words, then the position
  std::vector<std::int64_t> numpy;   ///< 624 words
  std::int64_t numpy_position = 0;
  std::int64_t numpy_has_gauss = 0;
  float numpy_cached_gaussian = 0.0F;
  at::Tensor torch;       ///< U8 [5056], CPU generator
  at::Tensor torch_cuda;  ///< U8 [16], generator of the current device; undefined without CUDA
  at::Tensor torch_mps;   ///< carried through; undefined when the file has none
};

/// The words after `random.seed(seed)` and `numpy.random.seed(seed)`; NumPy takes the low 32 bits.
void seed_python_and_numpy(RngState& state, std::uint64_t seed);

/// Throws: Error{kCheckpoint} naming the file and the entry that is missing or has another type or shape.
[[nodiscard]] RngState read_rng_state(const std::filesystem::path& path);
void write_rng_state(const std::filesystem::path& path, const RngState& state);

/// The states of one rank's torch generators, or of all ranks stacked along dim 0 ([5056] or [num_ranks, 5056]).
struct TorchRngStates {
  at::Tensor cpu;
  at::Tensor cuda;              ///< undefined without CUDA
  at::Tensor window_start_cpu;  ///< at the start of the present accumulation window; undefined outside one
  at::Tensor window_start_cuda;
};

/// The present states of this process's generators: `cpu`, and `cuda` where CUDA is available.
[[nodiscard]] TorchRngStates capture_torch_rng();

/// Sets this process's generators; an undefined state leaves its generator alone.
/// Throws: Error{kCheckpoint} naming `where` when bytes are no generator state.
void restore_torch_rng(const at::Tensor& cpu, const at::Tensor& cuda, const std::filesystem::path& where);

/// The states of all ranks, stacked, on rank 0; undefined tensors elsewhere. All ranks must hold the same members.
/// Collective: over `world`; none: this process alone.
[[nodiscard]] TorchRngStates gather_torch_rng(const TorchRngStates& own, const comm::ProcessGroupPtr& world);

/// Reads or writes rng_state_ranks.safetensors, every member [num_ranks, …]. Reading gives none without the file.
[[nodiscard]] std::optional<TorchRngStates> read_rank_rng_states(const std::filesystem::path& path);
void write_rank_rng_states(const std::filesystem::path& path, const TorchRngStates& states);

/// Seeds this process's torch generators with the stream of a data-parallel rank.
///
/// The CPU generator's 624 words are derived from all bits of the arguments, so streams of different ranks, seeds or
/// steps are different. With `step`: a fresh stream for going on from there on another number of ranks.
void seed_rank_stream(std::uint64_t seed, std::int64_t dp_rank, std::optional<std::int64_t> step = std::nullopt);

}  // namespace lerobot::checkpoint
