// lerobot-train: trains a policy on a LeRobotDataset, alone or on the ranks that mpirun starts.
#include "lerobot/policies/registry.hpp"
#include "lerobot/train/run_app.hpp"

int main(int argc, char** argv) { return lerobot::train::run_app(argc, argv, lerobot::policies::built_in_policies()); }
