#include "lerobot/data/sampler.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <array>

#include "lerobot/core/error.hpp"

namespace lerobot::data {
namespace {

void append_words(std::vector<std::uint32_t>& words, std::uint64_t value) {
  words.push_back(static_cast<std::uint32_t>(value));
  if (value >> 32 != 0) words.push_back(static_cast<std::uint32_t>(value >> 32));
}

constexpr std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t r = 0xca01f9ddU * x - 0x4973f715U * y;
  return r ^ (r >> 16);
}

}  // namespace

std::uint64_t epoch_seed(std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> entropy;
  append_words(entropy, seed);
  append_words(entropy, epoch);

  std::uint32_t constant = 0x43b0d7e5U;
  const auto hash = [&constant](std::uint32_t value) {
    value ^= constant;
    constant *= 0x931e8875U;
    value *= constant;
    return value ^ (value >> 16);
  };
  std::array<std::uint32_t, 4> pool{};
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i] = hash(i < entropy.size() ? entropy[i] : 0);
  for (std::size_t from = 0; from < pool.size(); ++from)
    for (std::size_t to = 0; to < pool.size(); ++to)
      if (to != from) pool[to] = mix(pool[to], hash(pool[from]));
  for (std::size_t i = pool.size(); i < entropy.size(); ++i)
    for (std::uint32_t& word : pool) word = mix(word, hash(entropy[i]));

  std::array<std::uint32_t, 2> out{};
  std::uint32_t factor = 0x8b51f9ddU;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t value = pool[i] ^ factor;
    factor *= 0x58f38dedU;
    value *= factor;
    out[i] = value ^ (value >> 16);
  }
  return out[0] | static_cast<std::uint64_t>(out[1]) << 32;
}

EpisodeAwareSampler::EpisodeAwareSampler(std::span<const std::int64_t> from, std::span<const std::int64_t> to,
                                         const SamplerOptions& options, log::Logger& logger)
    : shuffle_(options.shuffle), seed_(options.seed) {
  if (options.drop_n_first_frames < 0)
    fail(ErrorKind::kConfig, "sampler: drop_n_first_frames is {}; it must be >= 0.", options.drop_n_first_frames);
  if (options.drop_n_last_frames < 0)
    fail(ErrorKind::kConfig, "sampler: drop_n_last_frames is {}; it must be >= 0.", options.drop_n_last_frames);
  if (from.size() != to.size())
    fail(ErrorKind::kConfig, "sampler: {} episode starts, but {} episode ends.", from.size(), to.size());
  std::vector<bool> used(from.size(), !options.episodes.has_value());
  if (options.episodes)
    for (const std::int64_t episode : *options.episodes) {
      if (episode < 0 || episode >= static_cast<std::int64_t>(from.size()))
        fail(ErrorKind::kConfig, "sampler: episode {} is not among 0..{}.", episode,
             static_cast<std::int64_t>(from.size()) - 1);
      used[static_cast<std::size_t>(episode)] = true;
    }
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!used[i]) continue;
    const std::int64_t first = from[i] + options.drop_n_first_frames, last = to[i] - options.drop_n_last_frames;
    if (first >= last) {
      logger.warning("Episode {} has {} frames; dropping the first {} and the last {} leaves none, so it is skipped", i,
                     to[i] - from[i], options.drop_n_first_frames, options.drop_n_last_frames);
      continue;
    }
    starts_.push_back(first);
    ends_.push_back(num_frames() + last - first);
  }
  if (starts_.empty())
    fail(ErrorKind::kConfig,
         "sampler: No valid frames remain: {} episodes, the first {} and the last {} frames of each are dropped. "
         "Use longer episodes or a shorter action window.",
         std::count(used.begin(), used.end(), true), options.drop_n_first_frames, options.drop_n_last_frames);
}

std::int64_t EpisodeAwareSampler::frame(std::int64_t i) const {
  const auto episode = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
  return starts_[episode] + i - (episode == 0 ? 0 : ends_[episode - 1]);
}

at::Tensor EpisodeAwareSampler::order(std::int64_t epoch) const {
  if (!shuffle_) return at::arange(num_frames(), at::kLong);
  at::Generator generator = at::detail::createCPUGenerator(epoch_seed(seed_, static_cast<std::uint64_t>(epoch)));
  return at::randperm(num_frames(), generator, at::kLong);
}

}  // namespace lerobot::data
