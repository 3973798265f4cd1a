#!/usr/bin/env python3
"""The peer of our benchmarks: ACT as a plain PyTorch script, with the same sizes, batches and fused AdamW.

usage: [torchrun --nproc-per-node=2] train_act.py --root DATASET [--size small|default] [--image] [--steps N] [--fsdp]

No framework around it: the model from torch.nn, rows gathered from arrays, torch DDP (or FSDP2) over gloo when
torchrun starts several ranks. Prints one JSON line: samples per second of the job after a warm-up, peak resident memory.
"""
import argparse
import json
import math
import os
import pathlib
import resource
import time

import pyarrow.parquet as pq
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

SIZES = {
    "small": dict(dim=64, heads=4, ff=128, enc=2, dec=1, vae=2, latent=32, chunk=10),
    "default": dict(dim=512, heads=8, ff=3200, enc=4, dec=1, vae=4, latent=32, chunk=100),
}


class EncoderLayer(nn.Module):
    def __init__(self, s, dropout):
        super().__init__()
        self.attn = nn.MultiheadAttention(s["dim"], s["heads"], dropout=dropout)
        self.linear1, self.linear2 = nn.Linear(s["dim"], s["ff"]), nn.Linear(s["ff"], s["dim"])
        self.norm1, self.norm2 = nn.LayerNorm(s["dim"]), nn.LayerNorm(s["dim"])
        self.drop = nn.Dropout(dropout)

    def forward(self, x, pos, mask=None):
        q = x + pos
        x = self.norm1(x + self.drop(self.attn(q, q, x, key_padding_mask=mask)[0]))
        return self.norm2(x + self.drop(self.linear2(self.drop(F.relu(self.linear1(x))))))


class DecoderLayer(nn.Module):
    def __init__(self, s, dropout):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(s["dim"], s["heads"], dropout=dropout)
        self.cross_attn = nn.MultiheadAttention(s["dim"], s["heads"], dropout=dropout)
        self.linear1, self.linear2 = nn.Linear(s["dim"], s["ff"]), nn.Linear(s["ff"], s["dim"])
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(s["dim"]) for _ in range(3))
        self.drop = nn.Dropout(dropout)

    def forward(self, x, memory, pos_q, pos_k):
        q = x + pos_q
        x = self.norm1(x + self.drop(self.self_attn(q, q, x)[0]))
        x = self.norm2(x + self.drop(self.cross_attn(x + pos_q, memory + pos_k, memory)[0]))
        return self.norm3(x + self.drop(self.linear2(self.drop(F.relu(self.linear1(x))))))


class Block(nn.Module):
    """Residual block of ResNet-18 with frozen normalisation."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.down = nn.Conv2d(cin, cout, 1, stride, bias=False) if stride != 1 or cin != cout else None
        for i in range(3):
            self.register_buffer(f"s{i}", torch.ones(1, cout, 1, 1))
            self.register_buffer(f"b{i}", torch.zeros(1, cout, 1, 1))

    def forward(self, x):
        y = F.relu(self.c1(x) * self.s0 + self.b0)
        y = self.c2(y) * self.s1 + self.b1
        skip = x if self.down is None else self.down(x) * self.s2 + self.b2
        return F.relu(y + skip)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.register_buffer("s", torch.ones(1, 64, 1, 1))
        self.register_buffer("b", torch.zeros(1, 64, 1, 1))
        plan = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
        self.blocks = nn.Sequential(*[Block(*p) for p in plan])

    def forward(self, x):
        return self.blocks(F.max_pool2d(F.relu(self.conv1(x) * self.s + self.b), 3, 2, 1))


def sinusoid_1d(n, dim):
    angle = torch.arange(n).double()[:, None] / 10000 ** (2 * (torch.arange(dim) // 2).double() / dim)
    out = angle.clone()
    out[:, 0::2], out[:, 1::2] = angle[:, 0::2].sin(), angle[:, 1::2].cos()
    return out.float()


def sinusoid_2d(h, w, dim):
    half = dim // 2
    y = torch.arange(1, h + 1).float()[:, None].expand(h, w) / (h + 1e-6) * 2 * math.pi
    x = torch.arange(1, w + 1).float()[None, :].expand(h, w) / (w + 1e-6) * 2 * math.pi
    div = 10000 ** (2 * (torch.arange(half) // 2).float() / half)
    parts = []
    for a in (y, x):
        v = a[..., None] / div
        parts.append(torch.stack((v[..., 0::2].sin(), v[..., 1::2].cos()), -1).flatten(-2))
    return torch.cat(parts, -1).reshape(h * w, 1, dim)


class ACT(nn.Module):
    def __init__(self, s, state, env, action, image, dropout=0.1):
        super().__init__()
        d = s["dim"]
        self.s, self.image = s, image
        self.cls = nn.Embedding(1, d)
        self.vae_state, self.vae_action = nn.Linear(state, d), nn.Linear(action, d)
        self.vae_out = nn.Linear(d, 2 * s["latent"])
        self.register_buffer("vae_pos", sinusoid_1d(2 + s["chunk"], d)[:, None])
        self.vae = nn.ModuleList(EncoderLayer(s, dropout) for _ in range(s["vae"]))
        self.encoder = nn.ModuleList(EncoderLayer(s, dropout) for _ in range(s["enc"]))
        self.decoder = nn.ModuleList(DecoderLayer(s, dropout) for _ in range(s["dec"]))
        self.decoder_norm = nn.LayerNorm(d)
        self.in_state, self.in_latent = nn.Linear(state, d), nn.Linear(s["latent"], d)
        self.in_env = nn.Linear(env, d) if env else None
        self.tokens = nn.Embedding(2 + bool(env), d)
        self.queries = nn.Embedding(s["chunk"], d)
        self.head = nn.Linear(d, action)
        if image:
            self.backbone = Backbone()
            self.in_image = nn.Conv2d(512, d, 1)

    def forward(self, b):
        s, batch = self.s, b["state"].shape[0]
        x = torch.cat([self.cls.weight[None].expand(batch, -1, -1), self.vae_state(b["state"])[:, None], self.vae_action(b["action"])], 1)
        mask = torch.cat([torch.zeros(batch, 2, dtype=torch.bool), b["pad"]], 1)
        x = x.permute(1, 0, 2)
        for layer in self.vae:
            x = layer(x, self.vae_pos, mask)
        mu, log_var = self.vae_out(x[0]).chunk(2, -1)
        z = mu + (log_var / 2).exp() * torch.randn_like(mu)
        tokens = [self.in_latent(z), self.in_state(b["state"])]
        if self.in_env is not None:
            tokens.append(self.in_env(b["env"]))
        x, pos = torch.stack(tokens), self.tokens.weight[:, None]
        if self.image:
            f = self.in_image(self.backbone(b["image"]))
            x = torch.cat([x, f.flatten(2).permute(2, 0, 1)])
            pos = torch.cat([pos, sinusoid_2d(f.shape[2], f.shape[3], s["dim"])])
        for layer in self.encoder:
            x = layer(x, pos)
        y = torch.zeros(s["chunk"], batch, s["dim"])
        for layer in self.decoder:
            y = layer(y, x, self.queries.weight[:, None], pos)
        a = self.head(self.decoder_norm(y)).permute(1, 0, 2)
        valid = ~b["pad"][..., None]
        l1 = ((b["action"] - a).abs() * valid).sum() / (valid.sum() * a.shape[-1]).clamp_min(1)
        kld = (-0.5 * (1 + log_var - mu**2 - log_var.exp())).sum(-1).mean()
        return l1 + 10 * kld


class Rows:
    """All state rows in memory; a batch is a gather."""

    def __init__(self, root, chunk, image, use_env):
        table = pq.read_table(sorted(pathlib.Path(root).glob("data/*/*.parquet")))
        column = lambda name: torch.tensor(table[name].to_pylist(), dtype=torch.float32)
        self.state, self.action = column("observation.state"), column("action")
        self.env = column("observation.environment_state") if use_env else None
        episode = torch.tensor(table["episode_index"].to_pylist())
        self.end = torch.searchsorted(episode, episode, right=True)
        self.state = (self.state - self.state.mean(0)) / self.state.std(0)
        self.action = (self.action - self.action.mean(0)) / self.action.std(0)
        self.steps, self.image = torch.arange(chunk), image

    def batch(self, index):
        want = index[:, None] + self.steps
        pad = want >= self.end[index][:, None]
        out = {"state": self.state[index], "action": self.action[want.minimum(self.end[index][:, None] - 1)], "pad": pad}
        if self.env is not None:
            out["env"] = self.env[index]
        if self.image:
            out["image"] = torch.rand(len(index), 3, *self.image)
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--image", default="", help="HxW of a random picture per sample")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--fsdp", action="store_true")
    a = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if world > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(1000)
    size = SIZES[a.size]
    image = tuple(map(int, a.image.split("x"))) if a.image else None
    rows = Rows(a.root, size["chunk"], image, use_env=not image)
    model = ACT(size, rows.state.shape[1], 0 if rows.env is None else rows.env.shape[1], rows.action.shape[1], image)
    if world > 1 and a.fsdp:
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", (world,))
        for layer in [*model.vae, *model.encoder, *model.decoder]:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif world > 1:
        model = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=1e-4, fused=True)
    torch.manual_seed(1000 + rank)
    order, start = torch.randperm(len(rows.state)), 0.0
    for step in range(a.warmup + a.steps):
        if step == a.warmup:
            start = time.perf_counter()
        at = (step * world + rank) * a.batch % (len(order) - a.batch)
        loss = model(rows.batch(order[at : at + a.batch]))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    seconds = time.perf_counter() - start
    if rank == 0:
        print(json.dumps({"samples_per_s": a.steps * a.batch * world / seconds, "ms_per_step": 1e3 * seconds / a.steps,
                          "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
