#!/usr/bin/python3
"""Torch's side of `delta_bench --peers`: finds changed bf16 weights with one torch operation after the other.

usage: delta_torch.py FOLDER THREADS    started by the benchmark; FOLDER holds the arrays p, m and v as fp32

Needs Debian's python3-torch (apt-get install python3-torch); neither the build nor the tests use it. Reads lines:
  plain|guard STEP_SIZE BC2 EPSILON DECAY MARGIN     answers with the seconds of one pass
  indices                                            writes FOLDER/indices as int32 and answers with their number
"""
import os
import sys
import time

try:
    import torch
except ImportError as problem:
    print(f"no torch for {sys.executable}: {problem}; apt-get install python3-torch", flush=True)
    sys.exit(1)


def find(p, m, v, step_size, bc2, epsilon, decay, margin):
    """Inversion, cast, comparison, compaction. Temporaries are reused where torch lets them be."""
    denominator = (v / bc2).sqrt_().add_(epsilon)
    old = (m * step_size).div_(denominator).add_(p).div_(decay)
    current = p.to(torch.bfloat16)
    mask = old.to(torch.bfloat16).view(torch.int16) != current.view(torch.int16)
    if margin is not None:
        mask |= near_boundary(old, current, margin)
    indices = mask.nonzero().squeeze(1)
    return indices.to(torch.int32), current[indices]


def near_boundary(old, current, margin):
    """Whether old lies within the margin of half way to its neighbour: the reference's guard, for finite values."""
    bits = current.view(torch.int16).to(torch.int32) & 0xFFFF
    value = current.to(torch.float32)
    is_below = old < value
    # Towards zero the neighbour has smaller bits, away from it larger ones; zeros have the same two.
    step = (is_below == (bits >= 0x8000)).to(torch.int32).mul_(2).sub_(1)
    around_zero = is_below.to(torch.int32).mul_(0x8000).add_(1)
    beside = torch.where((bits & 0x7FFF) == 0, around_zero, bits + step)
    neighbour = (beside << 16).view(torch.float32)
    gap = (value - neighbour).abs_()
    distance = (value - old).abs_()
    return (distance >= (gap * 0.5) * (1.0 - margin)) & old.isfinite() & value.isfinite()


def main():
    folder, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    count = os.path.getsize(f"{folder}/p") // 4
    load = lambda name: torch.from_file(f"{folder}/{name}", shared=False, size=count, dtype=torch.float32).clone()
    p, m, v = load("p"), load("m"), load("v")
    found = None
    print(f"ready {torch.__version__}", flush=True)
    for line in sys.stdin:
        kind, *numbers = line.split()
        if kind == "indices":
            found[0].numpy().tofile(f"{folder}/indices")
            print(len(found[0]), flush=True)
            continue
        step_size, bc2, epsilon, decay, margin = map(float, numbers)
        found = None
        with torch.no_grad():
            begin = time.perf_counter()
            found = find(p, m, v, step_size, bc2, epsilon, decay, margin if kind == "guard" else None)
            print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
