#!/usr/bin/env bash
# A run of ours, with RANKS ranks, gives a checkpoint of LeRobot's form that torch and safetensors go on from.
# usage: unsharded.sh BIN SOURCE PYTHON RANKS
set -euo pipefail
bin=$1 source=$2 python=$3 ranks=$4
"$python" -c 'import torch, safetensors' 2>/dev/null || { echo "skipped: no Python with torch and safetensors (scripts/setup --full)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpirun --oversubscribe --allow-run-as-root --bind-to none -n "$ranks" "$bin/lerobot-train" \
  --dataset.repo_id=golden/pusht_mini_state --dataset.root="$source/tests/data/datasets/pusht_mini_state" --policy.type=act \
  --policy.device=cpu --policy.push_to_hub=false --policy.chunk_size=10 --policy.n_action_steps=10 --policy.dim_model=16 \
  --policy.n_heads=2 --policy.dim_feedforward=32 --policy.n_encoder_layers=2 --policy.n_decoder_layers=1 \
  --policy.n_vae_encoder_layers=1 --policy.latent_dim=4 --policy.dropout=0.0 --policy.pretrained_backbone_weights=null \
  --env_eval_freq=0 --num_workers=0 --batch_size=4 --steps=4 --save_freq=2 --output_dir="$work/run"
reference="$source/tests/data/checkpoints/single/run/checkpoints/000003"
"$python" "$source/tests/interop/validate_checkpoint.py" "$work/run/checkpoints/000004" "$reference"
"$python" "$source/tests/interop/load_unsharded.py" "$work/run/checkpoints/000004"
