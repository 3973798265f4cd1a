#include "lerobot/data/split.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lerobot/core/error.hpp"

namespace lerobot::data {

EpisodeSplit split_episodes(const std::vector<Episode>& all, std::span<const std::int64_t> episodes,
                            double eval_split) {
  if (!(eval_split >= 0 && eval_split < 1))
    fail(ErrorKind::kConfig, "dataset.eval_split: got {}; expected 0 <= eval_split < 1.", eval_split);
  if (eval_split == 0) return {{episodes.begin(), episodes.end()}, {}};
  std::vector<std::vector<std::int64_t>> by_task;  // in order of first appearance
  std::map<std::string, std::size_t> place;
  for (const std::int64_t episode : episodes) {
    const std::vector<std::string>& tasks = all.at(static_cast<std::size_t>(episode)).tasks;
    const auto [it, added] = place.try_emplace(tasks.empty() ? "" : tasks.front(), by_task.size());
    if (added) by_task.emplace_back();
    by_task[it->second].push_back(episode);
  }
  EpisodeSplit split;
  for (const std::vector<std::int64_t>& task : by_task) {
    const auto held_out = static_cast<std::ptrdiff_t>(std::ceil(static_cast<double>(task.size()) * eval_split));
    split.train.insert(split.train.end(), task.begin(), task.end() - held_out);
    split.eval.insert(split.eval.end(), task.end() - held_out, task.end());
  }
  if (split.train.empty())
    fail(ErrorKind::kConfig,
         "dataset.eval_split={} leaves 0 training episodes of {} in {} tasks. Use a smaller share or more episodes.",
         eval_split, episodes.size(), by_task.size());
  return split;
}

std::vector<std::int64_t> eval_positions(const Dataset& dataset, std::int64_t max_samples) {
  const auto* task_of = dataset.column("task_index").const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> positions;
  if (max_samples <= 0) {
    for (std::int64_t i = 0; i < dataset.num_frames(); ++i) positions.push_back(i);
    return positions;
  }
  std::map<std::int64_t, std::vector<std::int64_t>> by_task;
  for (std::int64_t i = 0; i < dataset.num_frames(); ++i) by_task[task_of[i]].push_back(i);
  const auto each =
      static_cast<std::size_t>(std::max<std::int64_t>(1, max_samples / static_cast<std::int64_t>(by_task.size())));
  for (const auto& [task, frames] : by_task)
    positions.insert(positions.end(), frames.begin(),
                     frames.begin() + static_cast<std::ptrdiff_t>(std::min(each, frames.size())));
  return positions;
}

}  // namespace lerobot::data
