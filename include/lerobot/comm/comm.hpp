#pragma once
// comm: how the ranks of a job talk.
//   MpiEnvironment        the MPI session of `main`; gives the group "world"
//   ProcessGroupPtr       every group is a c10d group; split, single_rank_group make others
//   all_reduce, ...       the collectives, waiting or started; sums have one fixed order (tree_reduce)
//   on_every_rank         a local step that can fail, with all ranks agreeing on the outcome
//   PatientPhase          when one rank may take longer than the time-out
//   run_ranks             ranks as threads, for unit tests
//   make_device_group     NCCL for CUDA tensors
#include "lerobot/comm/agree.hpp"
#include "lerobot/comm/collectives.hpp"
#include "lerobot/comm/device_group.hpp"
#include "lerobot/comm/environment.hpp"
#include "lerobot/comm/groups.hpp"
#include "lerobot/comm/in_process.hpp"
#include "lerobot/comm/process_group.hpp"
#include "lerobot/comm/tree.hpp"
