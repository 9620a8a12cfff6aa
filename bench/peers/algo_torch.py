#!/usr/bin/python3
"""Torch's side of `algo_bench --peers`: losses of training, forward and backward, one torch operation after the other.

usage: algo_torch.py FOLDER THREADS    started by the benchmark; FOLDER holds logprobs, proximal, old, advantages (fp32)
and mask (bytes)

Needs Debian's python3-torch (apt-get install python3-torch); neither the build nor the tests use it. Reads lines:
  ppo|ppo_dual|cispo|sapo|critic    answers with the seconds of one forward and backward, and the loss
  gradient                          writes FOLDER/gradient of the last as fp32 and answers "done"
"""
import os
import sys
import time

try:
    import torch
except ImportError as problem:
    print(f"no torch for {sys.executable}: {problem}; apt-get install python3-torch", flush=True)
    sys.exit(1)


def ppo(t, dual=None):
    count = t["mask"].count_nonzero() or 1
    ratio = torch.where(t["mask"], torch.exp(t["logprobs"] - t["proximal"]), 0)
    loss = torch.max(-t["advantages"] * ratio, -t["advantages"] * ratio.clamp(0.8, 1.28))
    if dual is not None:
        loss = torch.min(loss, torch.sign(t["advantages"]) * dual * t["advantages"])
    return torch.where(t["mask"], loss, 0).sum() / count


def cispo(t):
    count = t["mask"].count_nonzero() or 1
    ratio = torch.exp(t["logprobs"].detach() - t["proximal"]).clamp(0.8, 1.28)
    return torch.where(t["mask"], -ratio * t["advantages"] * t["logprobs"], 0).sum() / count


def sapo(t):
    count = t["mask"].count_nonzero() or 1
    ratio = torch.exp(t["logprobs"] - t["proximal"])
    gain = torch.sigmoid(1.0 * (ratio - 1)) * (4 / 1.0)
    other = torch.sigmoid(1.05 * (ratio - 1)) * (4 / 1.05)
    loss = -torch.where(t["advantages"] > 0, gain, other) * t["advantages"]
    return torch.where(t["mask"], loss, 0).sum() / count


def critic(t):
    value, old, target = t["logprobs"], t["proximal"], t["advantages"]
    moved = old + (value - old).clamp(-0.2, 0.2)
    loss = torch.max(0.5 * (value - target) ** 2, 0.5 * (moved - target) ** 2)
    return torch.where(t["mask"], loss, 0).sum() / t["mask"].count_nonzero()


LOSSES = {"ppo": ppo, "ppo_dual": lambda t: ppo(t, 3.0), "cispo": cispo, "sapo": sapo, "critic": critic}


def main():
    folder, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    count = os.path.getsize(f"{folder}/mask")
    load = lambda name, kind: torch.from_file(f"{folder}/{name}", shared=False, size=count, dtype=kind).clone()
    tensors = {name: load(name, torch.float32) for name in ("logprobs", "proximal", "old", "advantages")}
    tensors["mask"] = load("mask", torch.uint8).bool()
    tensors["logprobs"].requires_grad_()
    print(f"ready {torch.__version__}", flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name == "gradient":
            tensors["logprobs"].grad.numpy().tofile(f"{folder}/gradient")
            print("done", flush=True)
            continue
        tensors["logprobs"].grad = None
        begin = time.perf_counter()
        loss = LOSSES[name](tensors)
        loss.backward()
        seconds = time.perf_counter() - begin
        print(seconds, loss.item(), flush=True)


if __name__ == "__main__":
    main()
