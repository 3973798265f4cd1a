#pragma once

namespace lerobot::train {

/// The most memory that this process has had resident, in MB (2^20 bytes), as the operating system counts it.
[[nodiscard]] double peak_resident_mb();

}  // namespace lerobot::train
