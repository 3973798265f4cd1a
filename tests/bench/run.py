#!/usr/bin/env python3
"""Times lerobot-train beside a plain PyTorch script with the same model, batches and optimizer, in one run.

usage: run.py [--build build/release] [--python PYTHON] [--rounds N] [--quick]

PYTHON needs torch and pyarrow (scripts/setup --full). Each round runs ours, then the peer, so that a machine that gets
slower hits both; the table shows medians and the median of the ratios. Run it on a quiet machine.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/datasets"
SMALL = ["--policy.chunk_size=10", "--policy.n_action_steps=10", "--policy.dim_model=64", "--policy.n_heads=4",
         "--policy.dim_feedforward=128", "--policy.n_encoder_layers=2", "--policy.n_vae_encoder_layers=2"]
COMMON = ["--dataset.repo_id=bench/pusht", "--policy.type=act", "--policy.device=cpu", "--policy.push_to_hub=false",
          "--policy.pretrained_backbone_weights=null", "--batch_size=8", "--save_checkpoint=false"]


def mpirun(ranks):
    return [] if ranks == 0 else ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", str(ranks)]


def ours(a, ranks, dataset, extra, steps, warmup, threads):
    """Samples per second of the job after the warm-up, and the largest resident memory of a rank in MB."""
    out = tempfile.mkdtemp()
    shutil.rmtree(out)
    # The first log window is the warm-up, the second is measured.
    command = mpirun(ranks) + [f"{a.build}/bin/lerobot-train", *COMMON, f"--dataset.root={DATA / dataset}", *extra,
                               f"--steps={2 * steps}", f"--log_freq={steps}", f"--output_dir={out}"]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    last = [json.loads(line) for line in open(f"{out}/metrics.jsonl")][-1]
    shutil.rmtree(out)
    memory = re.search(r"Peak resident memory per rank: (\d+) MB", run.stdout)
    return last["samples_per_s"], float(memory.group(1)), last


def peer(a, ranks, dataset, extra, steps, warmup, threads):
    script = [str(ROOT / "tests/bench/peers/train_act.py"), "--root", str(DATA / dataset), "--steps", str(steps), "--warmup", str(warmup)]
    launch = [a.python] if ranks == 0 else [a.python, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    run = subprocess.run(launch + script + extra, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    if run.returncode:
        sys.exit(run.stdout + run.stderr)
    result = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("{")))
    return result["samples_per_s"], result["rss_mb"], result


def launch_time(a):
    """Wall seconds of a two-rank job that makes one optimizer step and ends."""
    out = tempfile.mkdtemp()
    shutil.rmtree(out)
    command = mpirun(2) + [f"{a.build}/bin/lerobot-train", *COMMON, *SMALL, f"--dataset.root={DATA / 'pusht_mini_state'}",
                           "--num_workers=0", "--steps=1", f"--output_dir={out}"]
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    seconds = time.perf_counter() - start
    shutil.rmtree(out)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--python", default=os.path.expanduser("~/.cache/lerobot-cpp/venv/bin/python"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small model only")
    a = parser.parse_args()

    cases = [
        ("small state-only ACT, 1 process", 0, "pusht_mini_state", SMALL + ["--num_workers=0"], [], 400, 50, 1),
        ("small state-only ACT, DDP on 2 ranks", 2, "pusht_mini_state", SMALL + ["--num_workers=0"], [], 400, 50, 1),
        ("small state-only ACT, FSDP on 2 ranks", 2, "pusht_mini_state", SMALL + ["--num_workers=0", "--parallelism.dp_shard=2"], ["--fsdp"], 400, 50, 1),
    ]
    if not a.quick:
        cases += [("default-size ACT, 96x96 images, 1 process, 2 threads", 0, "pusht_mini_images", ["--num_workers=1"],
                   ["--size", "default", "--image", "96x96"], 8, 2, 2)]
    rows = []
    for name, ranks, dataset, flags, peer_flags, steps, warmup, threads in cases:
        pairs = [(ours(a, ranks, dataset, flags, steps, warmup, threads), peer(a, ranks, dataset, peer_flags, steps, warmup, threads))
                 for _ in range(a.rounds)]
        mine, theirs = (statistics.median(p[i][0] for p in pairs) for i in (0, 1))
        ratio = statistics.median(p[0][0] / p[1][0] for p in pairs)
        memory = [statistics.median(p[i][1] for p in pairs) for i in (0, 1)]
        wait = statistics.median(p[0][2]["dataloading_s"] / p[0][2]["step_s"] for p in pairs)
        rows.append(f"| {name} | {mine:,.0f} | {theirs:,.0f} | {ratio:.2f} | {memory[0]:.0f} | {memory[1]:.0f} | {100 * wait:.1f} % |")
        print(rows[-1], flush=True)
    times = [launch_time(a) for _ in range(2 * a.rounds + 1)]
    print("\n| case | ours, samples/s | torch script, samples/s | ratio | ours, MB per rank | torch, MB per rank | wait for data |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\nLaunch to the end of the job after one step, 2 ranks: {statistics.median(times):.2f} s "
          f"(from {min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    main()
