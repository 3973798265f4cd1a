#pragma once
// config: command line <-> TrainConfig <-> train_config.json. The only reader of text; past this room settings have
// types.
//   train_config.hpp    TrainConfig and its blocks as plain values; enums.hpp their enums and how they are written
//   parse_train.hpp     parse_train: words, files and environment -> a complete, checked TrainConfig
//   train_json.hpp      to_json, read_train_config: the file inside every checkpoint
//   topology.hpp        resolve_topology: degrees against the number of ranks (pure)
//   built_features.hpp  refuse_unbuilt: what this build does not have
//   schema.hpp          every setting as data: flags, files, --help and suggestions come from one table
//   value.hpp           text -> value by declared type
// Order of use: process_environment(), parse_train(), log its warnings and overrides, hand config on. Torch-free.
#include "lerobot/config/built_features.hpp"
#include "lerobot/config/enums.hpp"
#include "lerobot/config/parse_train.hpp"
#include "lerobot/config/schema.hpp"
#include "lerobot/config/topology.hpp"
#include "lerobot/config/train_config.hpp"
#include "lerobot/config/train_json.hpp"
#include "lerobot/config/validate.hpp"
#include "lerobot/config/value.hpp"
