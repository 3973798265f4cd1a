#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lerobot/core/dtype.hpp"

namespace lerobot::config {

enum class MixedPrecision : std::uint8_t { kNo, kBf16, kFp16 };
enum class CheckpointFormat : std::uint8_t { kSafetensors, kDcp, kSafetensorsDcp };
enum class ActivationCheckpointing : std::uint8_t { kNone, kFull };
enum class Resume : std::uint8_t { kFalse, kTrue, kAuto };
enum class OptimizerKind : std::uint8_t { kAdam, kAdamW, kSgd, kMultiAdam };
enum class SchedulerKind : std::uint8_t {
  kDiffuser,
  kVqBet,
  kConstantWithWarmup,
  kCosineAnnealingWithWarmup,
  kCosineDecayWithWarmup,
};
enum class RepoType : std::uint8_t { kDataset, kBucket };
enum class DepthUnit : std::uint8_t { kMillimetre, kMetre };
enum class LoaderContext : std::uint8_t { kSpawn, kFork, kForkServer };
enum class WandbMode : std::uint8_t { kOnline, kOffline, kDisabled };
/// What a run does with a non-finite gradient when no loss scaler is there to expect it.
enum class OnNonfinite : std::uint8_t { kStop, kSkip };

/// How an enumerator is written in files and on the command line.
template <typename E>
struct EnumName {
  E value;
  std::string_view text;
  std::string_view member = {};  ///< the name of LeRobot's (Python) enum member, taken as a second spelling
};

/// All names of an enum, in the order in which messages list them.
template <typename E>
inline constexpr std::array<EnumName<E>, 0> kEnumNames{};

template <>
inline constexpr std::array kEnumNames<MixedPrecision>{EnumName{MixedPrecision::kNo, "no"},
                                                       EnumName{MixedPrecision::kFp16, "fp16"},
                                                       EnumName{MixedPrecision::kBf16, "bf16"}};
template <>
inline constexpr std::array kEnumNames<CheckpointFormat>{
    EnumName{CheckpointFormat::kSafetensors, "safetensors", "SAFETENSORS"},
    EnumName{CheckpointFormat::kDcp, "dcp", "DCP"},
    EnumName{CheckpointFormat::kSafetensorsDcp, "safetensors_dcp", "SAFETENSORS_AND_DCP"}};
template <>
inline constexpr std::array kEnumNames<ActivationCheckpointing>{
    EnumName{ActivationCheckpointing::kNone, "none", "NONE"}, EnumName{ActivationCheckpointing::kFull, "full", "FULL"}};
template <>
inline constexpr std::array kEnumNames<Resume>{EnumName{Resume::kTrue, "true"}, EnumName{Resume::kFalse, "false"},
                                               EnumName{Resume::kAuto, "auto"}};
template <>
inline constexpr std::array kEnumNames<OptimizerKind>{
    EnumName{OptimizerKind::kAdam, "adam"}, EnumName{OptimizerKind::kAdamW, "adamw"},
    EnumName{OptimizerKind::kSgd, "sgd"}, EnumName{OptimizerKind::kMultiAdam, "multi_adam"}};
template <>
inline constexpr std::array kEnumNames<SchedulerKind>{
    EnumName{SchedulerKind::kDiffuser, "diffuser"}, EnumName{SchedulerKind::kVqBet, "vqbet"},
    EnumName{SchedulerKind::kConstantWithWarmup, "constant_with_warmup"},
    EnumName{SchedulerKind::kCosineAnnealingWithWarmup, "cosine_annealing_with_warmup"},
    EnumName{SchedulerKind::kCosineDecayWithWarmup, "cosine_decay_with_warmup"}};
template <>
inline constexpr std::array kEnumNames<RepoType>{EnumName{RepoType::kDataset, "dataset"},
                                                 EnumName{RepoType::kBucket, "bucket"}};
template <>
inline constexpr std::array kEnumNames<DepthUnit>{EnumName{DepthUnit::kMillimetre, "mm"},
                                                  EnumName{DepthUnit::kMetre, "m"}};
template <>
inline constexpr std::array kEnumNames<LoaderContext>{EnumName{LoaderContext::kSpawn, "spawn"},
                                                      EnumName{LoaderContext::kFork, "fork"},
                                                      EnumName{LoaderContext::kForkServer, "forkserver"}};
template <>
inline constexpr std::array kEnumNames<WandbMode>{EnumName{WandbMode::kOnline, "online"},
                                                  EnumName{WandbMode::kOffline, "offline"},
                                                  EnumName{WandbMode::kDisabled, "disabled"}};
template <>
inline constexpr std::array kEnumNames<OnNonfinite>{EnumName{OnNonfinite::kStop, "stop"},
                                                    EnumName{OnNonfinite::kSkip, "skip"}};
/// The dtypes of `accelerator.fsdp.mixed_precision_policy`.
template <>
inline constexpr std::array kEnumNames<DType>{EnumName{DType::kF32, "float32"}, EnumName{DType::kF16, "float16"},
                                              EnumName{DType::kBF16, "bfloat16"}};

template <typename E>
concept NamedEnum = (kEnumNames<E>.size() > 0);

/// The text of an enumerator: "bf16".
template <NamedEnum E>
constexpr std::string_view text(E value) {
  for (const auto& name : kEnumNames<E>)
    if (name.value == value) return name.text;
  return "?";
}

static_assert(text(MixedPrecision::kBf16) == "bf16");

}  // namespace lerobot::config
