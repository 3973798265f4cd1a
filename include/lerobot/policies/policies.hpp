#pragma once
// policies: what a training run optimises and a robot runs. Single-process modules that know nothing of ranks.
//   Policy, PolicyOutput     the interface: loss, action chunks, an action queue, optimizer groups
//   PolicyType, Registry     the kinds of policies that a program knows, with their settings and presets
//   built_in_policies()      a registry with act
//   ACTPolicy, ACTConfig     the Action Chunking Transformer
//   from_pretrained, save_pretrained, load_weights, save_weights   the files config.json and model.safetensors
#include "lerobot/policies/act_policy.hpp"
#include "lerobot/policies/act_type.hpp"
#include "lerobot/policies/backbone_weights.hpp"
#include "lerobot/policies/policy.hpp"
#include "lerobot/policies/pretrained.hpp"
#include "lerobot/policies/registry.hpp"
#include "lerobot/policies/weights.hpp"
