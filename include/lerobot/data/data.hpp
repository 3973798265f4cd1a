#pragma once
// data: from a LeRobotDataset v3.0 on disk to this rank's batches.
//   find_dataset, read_metadata   where the dataset lies; everything under meta/
//   Dataset                       the selected episodes: numbers in memory, pictures decoded on demand
//   EpisodeAwareSampler           the order of an epoch, a pure function of (seed, epoch)
//   BatchPlan                     which positions of that order each rank reads at each step, also after a resume
//   Loader, EvalLoader            batches made ahead of need by threads; a pass over held-out frames
//   ImageTransforms               random changes to pictures, reproducible by seed
// Order of use: find_dataset -> read_metadata -> [split_episodes] -> Dataset -> make_sampler -> Loader.
// Ranks are plain numbers here: nothing in this room communicates.
#include "lerobot/data/batch.hpp"
#include "lerobot/data/batch_plan.hpp"
#include "lerobot/data/batch_source.hpp"
#include "lerobot/data/cores.hpp"
#include "lerobot/data/dataset.hpp"
#include "lerobot/data/features.hpp"
#include "lerobot/data/image_transforms.hpp"
#include "lerobot/data/info.hpp"
#include "lerobot/data/loader.hpp"
#include "lerobot/data/locate.hpp"
#include "lerobot/data/metadata.hpp"
#include "lerobot/data/sampler.hpp"
#include "lerobot/data/split.hpp"
#include "lerobot/data/stats.hpp"
#include "lerobot/data/video.hpp"
