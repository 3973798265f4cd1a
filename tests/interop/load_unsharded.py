#!/usr/bin/env python3
"""Loads a single or DDP checkpoint of ours with torch and safetensors, as LeRobot (Python) would, and goes on from it.

usage: load_unsharded.py STEP_DIRECTORY
"""
import json
import pathlib
import random
import sys

import numpy
import torch
from safetensors.torch import load_file


def main():
    step = pathlib.Path(sys.argv[1])
    weights = load_file(step / "pretrained_model/model.safetensors")
    assert weights and all(torch.isfinite(w).all() for w in weights.values() if w.is_floating_point())

    state_dir = step / "training_state"
    flat = load_file(state_dir / "optimizer_state.safetensors")
    groups = json.loads((state_dir / "optimizer_param_groups.json").read_text())
    state = {}
    for key, value in flat.items():
        _, index, name = key.split("/")
        state.setdefault(int(index), {})[name] = value
    count = sum(len(g["params"]) for g in groups)
    assert [i for g in groups for i in g["params"]] == list(range(count))
    parameters = [torch.nn.Parameter(torch.zeros_like(state[i]["exp_avg"])) for i in range(count)]
    running = torch.optim.AdamW([{"params": [parameters[i] for i in g["params"]]} for g in groups])
    template = running.state_dict()
    for ours, theirs in zip(groups, template["param_groups"]):
        for key, value in theirs.items():
            assert key in ours, f"{key} is missing in optimizer_param_groups.json"
            want = list(value) if isinstance(value, tuple) else value
            assert type(ours[key]) is type(want), f"{key}: {ours[key]!r}, torch has {want!r}"
    running.load_state_dict({"state": state, "param_groups": groups})
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    running.step()
    assert all(torch.isfinite(p).all() for p in parameters)

    rng = load_file(state_dir / "rng_state.safetensors")
    torch.set_rng_state(rng["torch_rng_state"])
    random.setstate((int(rng["py_rng_version"]), tuple(rng["py_rng_state"].tolist()), None))
    numpy.random.set_state(("MT19937", rng["np_rng_state_values"].numpy().astype(numpy.uint32), int(rng["np_rng_state_index"]),
                            int(rng["np_rng_has_gauss"]), float(rng["np_rng_cached_gaussian"])))
    print(f"torch goes on from {step}: {len(weights)} tensors, {count} optimizer entries, "
          f"next draws {torch.rand(1).item():.6f} {random.random():.6f} {numpy.random.rand():.6f}")


if __name__ == "__main__":
    main()
