#pragma once
// processors: what stands between a dataset and a policy, and between a policy and a robot.
//   Batch                      tensors by feature name
//   PolicyFeature, NormalizationMap   what a policy takes and how it is normalised
//   Step, StepRegistry         one step; the steps that a program can read
//   Normalizer                 mean/std, min/max and quantile normalisation
//   Pipeline                   steps in a row; the files policy_preprocessor.json, policy_postprocessor.json
//   make_pre_processor, make_post_processor   the pipelines of a new policy
#include "lerobot/processors/batch.hpp"
#include "lerobot/processors/feature.hpp"
#include "lerobot/processors/normalizer.hpp"
#include "lerobot/processors/pipeline.hpp"
#include "lerobot/processors/step.hpp"
#include "lerobot/processors/tensor_file.hpp"
