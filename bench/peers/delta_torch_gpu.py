#!/usr/bin/env python3
"""torch's ways to find and apply changes on a device, measured like delta_gpu_bench measures its own.

usage: delta_torch_gpu.py --rates FILE [--json FILE] [--small]

Distributions are those of the benchmark (B10): p ~ N(0, 0.02), m ~ U(+-5e-5), v = m^2 U(0.5, 1.5), step 100. Learning
rates come from --rates FILE, the benchmark's own report, so that the same shares change. Times are of CUDA events,
medians of 20 after three that do not count. Says "skipped: no device" and succeeds where there is none.
"""
import argparse
import json
import statistics
import sys

STEP, BETA1, BETA2, EPSILON = 100, 0.9, 0.95, 1e-8
REPEATS = 20


def times_of(torch, act, repeats=REPEATS):
    for _ in range(3):
        act()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        act()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return {"ms": statistics.median(times), "ms_min": min(times), "ms_max": max(times)}


def invert(torch, weights, exp_avg, exp_avg_sq, rate):
    """The weight before the step, one operation after the other, as the reference does it."""
    bc1, bc2 = 1 - BETA1**STEP, 1 - BETA2**STEP
    denominator = (exp_avg_sq / bc2).sqrt_().add_(EPSILON)
    return (weights + exp_avg.mul(rate / bc1).div_(denominator)).div_(1.0)


def changed_mask(torch, weights, exp_avg, exp_avg_sq, rate):
    before = invert(torch, weights, exp_avg, exp_avg_sq, rate)
    now = weights.to(torch.bfloat16)
    return before.to(torch.bfloat16).view(torch.int16) != now.view(torch.int16), before, now


def near_boundary(torch, before, now, margin=1e-4):
    """The reference's guard: within `margin` of half the distance to the neighbour on the old value's side."""
    current = now.float()
    down = torch.nextafter(now, torch.full_like(now, -float("inf"))).float()
    up = torch.nextafter(now, torch.full_like(now, float("inf"))).float()
    half = torch.where(before < current, current - down, up - current).mul_(0.5)
    finite = torch.isfinite(before) & torch.isfinite(current)
    return finite & ((before - current).abs_() >= half.mul_(1.0 - margin))


def eager(torch, state, rate, with_margin):
    mask, before, now = changed_mask(torch, *state, rate)
    if with_margin:
        mask |= near_boundary(torch, before, now)
    indices = mask.nonzero().flatten()
    return indices.to(torch.int32), now[indices]


def compiled(torch):
    def mask_of(weights, exp_avg, exp_avg_sq, rate):
        bc1, bc2 = 1 - BETA1**STEP, 1 - BETA2**STEP
        before = weights + (exp_avg * (rate / bc1)) / ((exp_avg_sq / bc2).sqrt() + EPSILON)
        now = weights.to(torch.bfloat16)
        return before.to(torch.bfloat16).view(torch.int16) != now.view(torch.int16), now

    mask_of = torch.compile(mask_of, dynamic=False)

    def run(state, rate):
        mask, now = mask_of(*state, rate)
        indices = mask.nonzero().flatten()
        return indices.to(torch.int32), now[indices]

    return run


def cupy_select(torch):
    import cupy

    kernel = cupy.ElementwiseKernel(
        "float32 p, float32 m, float32 v, float32 step, float32 bc2, float32 eps", "bool mask, uint16 bits",
        """
        float u = __fdiv_rn(__fmul_rn(step, m), __fadd_rn(__fsqrt_rn(__fdiv_rn(v, bc2)), eps));
        unsigned now = __float_as_uint(p), old = __float_as_uint(__fadd_rn(p, u));
        bits = (now + 0x7FFFu + ((now >> 16) & 1u)) >> 16;
        mask = bits != ((old + 0x7FFFu + ((old >> 16) & 1u)) >> 16);
        """, "inversion_mask")

    def run(state, rate):
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            arrays = [cupy.from_dlpack(tensor) for tensor in state]
            mask, bits = kernel(*arrays, rate / (1 - BETA1**STEP), 1 - BETA2**STEP, EPSILON)
            indices = cupy.flatnonzero(mask)
            return indices.astype(cupy.int32), bits[indices]

    return run


def make_state(torch, elements):
    weights = torch.empty(elements, device="cuda").normal_(0.0, 0.02)
    exp_avg = torch.empty(elements, device="cuda").uniform_(-5e-5, 5e-5)
    exp_avg_sq = torch.empty(elements, device="cuda").uniform_(0.5, 1.5).mul_(exp_avg).mul_(exp_avg)
    return weights, exp_avg, exp_avg_sq


class Report:
    def __init__(self, path):
        self.path, self.rows = path, []

    def add(self, bench, what, **rest):
        self.rows.append({"bench": bench, "what": what, **rest})
        print("  ".join(f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                        for name, value in self.rows[-1].items()), flush=True)
        if self.path:
            with open(self.path, "w", encoding="utf-8") as out:
                json.dump({"rows": self.rows}, out, indent=1)

    def measure(self, torch, bench, what, act, repeats=REPEATS, **rest):
        """One row; a way that this torch does not have is a row that says why."""
        try:
            self.add(bench, what, **rest, **times_of(torch, act, repeats))
        except Exception as problem:  # A peer that fails must not end the others.
            torch.cuda.empty_cache()
            self.add(bench, what, **rest, failed=str(problem).splitlines()[0][:200])


def measure_detect(torch, report, elements, rates):
    state = make_state(torch, elements)
    run_compiled = compiled(torch)
    try:
        run_cupy = cupy_select(torch)
    except Exception as problem:
        run_cupy = None
        report.add("torch detect", "cupy", failed=str(problem)[:200])
    for share, rate in rates:
        indices, _ = eager(torch, state, rate, False)
        rest = {"elements": elements, "share": share, "marked": indices.numel() / elements}
        report.measure(torch, "torch detect", "eager", lambda: eager(torch, state, rate, False), **rest)
        report.measure(torch, "torch detect", "torch.compile, nonzero, gather", lambda: run_compiled(state, rate), **rest)
        if run_cupy is not None:
            report.measure(torch, "torch detect", "cupy, flatnonzero, gather", lambda: run_cupy(state, rate), **rest)
        if share == 0.01:
            report.measure(torch, "torch detect", "eager with margin", lambda: eager(torch, state, rate, True), repeats=5,
                           **rest)


def measure_many(torch, report, tensors, elements, rates):
    """The reference's loop: each tensor on its own, with a question to the device after each."""
    state = make_state(torch, tensors * elements)
    parts = [tuple(flat[t * elements:(t + 1) * elements] for flat in state) for t in range(tensors)]
    rate = dict(rates)[0.01]

    def loop():
        for part in parts:
            mask, _, now = changed_mask(torch, *part, rate)
            if bool(mask.any().item()):
                indices = mask.nonzero().flatten().to(torch.int32)
                now[indices]

    report.measure(torch, "torch detect", "eager, tensor by tensor", loop, repeats=5, tensors=tensors,
                   elements=tensors * elements, share=0.01)


def measure_apply(torch, report, elements, shares):
    weights = torch.empty(elements, device="cuda", dtype=torch.bfloat16).normal_()
    source = torch.empty_like(weights).normal_()
    report.measure(torch, "torch apply", "copy_", lambda: weights.copy_(source), elements=elements)
    for share in shares:
        chosen = (torch.rand(elements, device="cuda") < share).nonzero().flatten()
        values = source[chosen]
        rest = {"elements": elements, "share": share, "entries": chosen.numel()}
        report.measure(torch, "torch apply", "index_copy_, sorted", lambda: weights.index_copy_(0, chosen, values), **rest)
        narrow = chosen.to(torch.int32)
        report.measure(torch, "torch apply", "index_copy_ of int32, sorted",
                       lambda: weights.index_copy_(0, narrow.to(torch.int64), values), **rest)
        if share != 0.01:
            continue
        order = torch.randperm(chosen.numel(), device="cuda")
        shuffled, moved = chosen[order], values[order]
        report.measure(torch, "torch apply", "index_copy_, shuffled", lambda: weights.index_copy_(0, shuffled, moved), **rest)
        mask = torch.zeros(elements, device="cuda", dtype=torch.bool)
        mask[chosen] = True
        report.measure(torch, "torch apply", "masked_scatter_", lambda: weights.masked_scatter_(mask, values), **rest)


def rates_of(path):
    """(share, learning rate) of the benchmark's report."""
    with open(path, encoding="utf-8") as source:
        rows = json.load(source)["rows"]
    return [(row["share"], row["lr"]) for row in rows if row["bench"] == "share"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--rates", required=True)
    parser.add_argument("--small", action="store_true", help="2^24 weights instead of 2^30, to try the script")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("skipped: no torch")
        return 0
    if not torch.cuda.is_available():
        print("skipped: no device")
        return 0
    rates = rates_of(arguments.rates)
    report = Report(arguments.json)
    report.add("torch", torch.__version__, cuda=str(torch.version.cuda), device=torch.cuda.get_device_name())
    flat = 1 << (24 if arguments.small else 30)
    with torch.no_grad():
        measure_detect(torch, report, flat, rates)
        torch.cuda.empty_cache()
        measure_apply(torch, report, flat, [share for share, _ in rates])
        torch.cuda.empty_cache()
        measure_many(torch, report, 23 if arguments.small else 2304, 768 * 2048, rates)
    return 0


if __name__ == "__main__":
    sys.exit(main())
