#pragma once

#include "setup.hpp"

namespace lerobot::train {

/// Text of README.md: YAML front matter and a page about the policy, its data and its training. Unknown parts are left
/// out.
[[nodiscard]] std::string model_card(const Run& run);

/// Stages what `policy.push_to_hub` would publish in `<output_dir>/hub/<repo_id>/`; nothing is uploaded, which is
/// warned about.
///
/// `pretrained_model`: a complete folder with the final weights. Main rank only.
/// Throws: Error{kConfig} with path and reason when a file can't be written.
void stage_for_hub(const Run& run, const std::filesystem::path& pretrained_model);

}  // namespace lerobot::train
