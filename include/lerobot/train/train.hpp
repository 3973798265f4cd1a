#pragma once
// train: the one room that knows every other.
//   run_app         a whole training program: command line in, exit code out
//   Trainer         sets a run up from a checked configuration, and runs its loop
//   Seams           batches and noise from elsewhere, and an observer: for tests and for tools
//   MetricsTracker  figures of the log line and of metrics.jsonl
#include "lerobot/train/metrics.hpp"
#include "lerobot/train/progress_bar.hpp"
#include "lerobot/train/run_app.hpp"
#include "lerobot/train/seams.hpp"
#include "lerobot/train/trainer.hpp"
