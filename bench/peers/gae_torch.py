#!/usr/bin/python3
"""Torch's side of `advantages_bench --peers`: advantages by token, one column after the other, on one thread.

usage: gae_torch.py ROWS WIDTH TIMES    prints the seconds of each time

Needs Debian's python3-torch (apt-get install python3-torch); neither the build nor the tests use it.
"""
import sys
import time

try:
    import torch
except ImportError as problem:
    print(f"no torch for {sys.executable}: {problem}; apt-get install python3-torch", file=sys.stderr)
    sys.exit(1)


def advantages(rewards, values, mask, bootstrap, discount, decay):
    """Masking by multiplication, as trainers in torch do it."""
    last = torch.zeros(rewards.shape[0])
    next_value = bootstrap
    columns = [last]
    for t in range(rewards.shape[1] - 2, -1, -1):
        fresh = rewards[:, t] + discount * next_value - values[:, t] + decay * last
        kept = mask[:, t]
        next_value = next_value * (1 - kept) + values[:, t] * kept
        last = last * (1 - kept) + fresh * kept
        columns.append(last)
    result = torch.stack(columns[::-1], dim=1)
    return result, result + values


def main():
    rows, width, times = (int(word) for word in sys.argv[1:4])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rewards, values = torch.randn(rows, width), torch.randn(rows, width)
    mask = (torch.rand(rows, width) < 0.7).float()
    with torch.no_grad():
        for _ in range(times):
            begin = time.perf_counter()
            advantages(rewards, values, mask, torch.zeros(rows), 1.0, 0.95)
            print(time.perf_counter() - begin)


main()
