#!/usr/bin/env python3
"""Checks a checkpoint that lerobot-train wrote against one that LeRobot (Python) wrote.

usage: validate_checkpoint.py OURS REFERENCE

Both are step directories. JSON files must have the same keys in the same order with values of the same primitive kind
(LeRobot loads its training state strictly: 1 is not 1.0); safetensors files the same names, dtypes, shapes and
metadata. Values may differ. Needs the standard library only.
"""
import json
import pathlib
import struct
import sys

# What we add on purpose, and what only one kind of run has.
EXTRA_KEYS = {"training_step.json": {"progress", "mixed_precision"}}
EXTRA_FILES = {"manifest.json", "rng_state_ranks.safetensors", "run_settings.json"}
# Maps with free keys, and settings that are null or a value: any kind will do there.
FREE = {"input_features", "output_features", "rename_map", "root", "output_dir", "job_name", "pretrained_path", "checkpoint_path",
        "repo_id", "scheduler", "features", "optimizer", "device", "wrap_modules", "min_num_params", "video_backend", "episodes"}


def fail(message):
    print(f"validate_checkpoint: {message}", file=sys.stderr)
    sys.exit(1)


def kind(value):
    return "bool" if isinstance(value, bool) else type(value).__name__


def compare(ours, theirs, where, extra=frozenset()):
    if kind(ours) != kind(theirs):
        fail(f"{where}: a {kind(ours)} ({ours!r}), LeRobot writes a {kind(theirs)} ({theirs!r})")
    if isinstance(theirs, dict):
        own = [k for k in ours if k not in extra]
        if own != list(theirs):
            fail(f"{where}: keys {own}, LeRobot writes {list(theirs)}")
        for key in theirs:
            if key not in FREE:
                compare(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(theirs, list):
        for i, (a, b) in enumerate(zip(ours, theirs)):
            compare(a, b, f"{where}[{i}]")


def header(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        text = file.read(length).decode()
        size = path.stat().st_size - 8 - length
    entries = json.loads(text)
    metadata = entries.pop("__metadata__", None)
    end = max((e["data_offsets"][1] for e in entries.values()), default=0)
    if end != size:
        fail(f"{path}: tensors end at {end}, the file has {size} bytes of data")
    return metadata, {name: (e["dtype"], e["shape"]) for name, e in entries.items()}, list(entries)


def main():
    ours, theirs = map(pathlib.Path, sys.argv[1:3])
    for path in sorted(theirs.rglob("*")):
        if not path.is_file() or path.name == "README.md":
            continue
        relative = path.relative_to(theirs)
        mine = ours / relative
        if not mine.is_file():
            fail(f"{mine} is missing; LeRobot writes it")
        if path.suffix == ".json":
            text = mine.read_text()
            if text.endswith("\n"):
                fail(f"{relative}: ends with a newline")
            compare(json.loads(text), json.loads(path.read_text()), str(relative), EXTRA_KEYS.get(path.name, frozenset()))
        elif path.suffix == ".safetensors":
            a, b = header(mine), header(path)
            if a != b:
                fail(f"{relative}: header {a}, LeRobot writes {b}")
    known = {p.relative_to(theirs) for p in theirs.rglob("*")}
    for path in ours.rglob("*"):
        if path.is_file() and path.relative_to(ours) not in known and path.name not in EXTRA_FILES:
            fail(f"{path.relative_to(ours)}: LeRobot writes no such file")
    print(f"validate_checkpoint: {ours} has the form that LeRobot writes")


if __name__ == "__main__":
    main()
