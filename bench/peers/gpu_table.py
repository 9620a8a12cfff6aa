#!/usr/bin/env python3
"""The table of a GPU run: each target with what was measured, and ratios against peers of the same run.

usage: gpu_table.py delta_gpu.json delta_torch.json      the second may be missing
"""
import json
import pathlib
import sys

FLAT = 1 << 30


def load(path):
    file = pathlib.Path(path)
    return json.loads(file.read_text(encoding="utf-8"))["rows"] if file.is_file() else []


def rows_with(rows, **wanted):
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def first_ms(rows, **wanted):
    return next((row["ms"] for row in rows_with(rows, **wanted) if "ms" in row), None)


def verdict(value, must, aim, at_most=False):
    if value is None:
        return "not measured"
    reached = (lambda limit: value <= limit) if at_most else (lambda limit: value >= limit)
    return "aim met" if reached(aim) else "must met" if reached(must) else "MISSED"


def line(what, value, must, aim, at_most=False, unit="x"):
    shown = "-" if value is None else f"{value:.2%}" if unit == "%" else f"{value:.3g}{unit}"
    limit = (lambda x: f"{x:.0%}") if unit == "%" else (lambda x: f"{x:g}{unit}")
    print(f"{what:<66} {shown:>9}  must {limit(must):>6}  aim {limit(aim):>6}  {verdict(value, must, aim, at_most)}")


def ratio(other, own):
    return other / own if other and own else None


def detect_tables(rows):
    print("\ndetector, flat: share of this run's copy bandwidth [ms]")
    for row in rows_with(rows, bench="detect", what="flat"):
        print(f"  {row['index']} {row['margin']:<9} {row['elements']:>11} weights, {row['share']:.1%}:"
              f" {row['of_copy']:.3f} [{row['ms']:.3f}, {row['ms_min']:.3f} to {row['ms_max']:.3f}]")


def detect_targets(rows, torch):
    for elements in (FLAT, 2 * FLAT):
        flat = rows_with(rows, bench="detect", what="flat", margin="proven", elements=elements)
        for row in flat:
            if elements == FLAT and row["share"] == 0.01 and row["index"] == "int64":
                continue
            line(f"detect, {elements} weights, {row['share']:.1%}: of copy bandwidth", row["of_copy"], 0.7, 0.9, unit="%")
    own = first_ms(rows, bench="detect", what="flat", margin="proven", elements=FLAT, share=0.01, index="int32")
    torch_rows = rows_with(torch, bench="torch detect", share=0.01, elements=FLAT)
    line("detect at 1 % vs torch eager", ratio(first_ms(torch_rows, what="eager"), own), 5, 10)
    line("detect at 1 % vs torch.compile, nonzero, gather",
         ratio(first_ms(torch_rows, what="torch.compile, nonzero, gather"), own), 1.2, 1.5)
    line("detect at 1 % vs CuPy", ratio(first_ms(torch_rows, what="cupy, flatnonzero, gather"), own), 4, 8)
    for row in rows_with(rows, bench="cub", share=0.01):
        line(f"detect at 1 % vs CUB {row['what']}"[:66], ratio(row["ms"], own), 1.3, 2)
    moe = first_ms(rows, bench="detect", what="moe")
    line("2,304-tensor shard vs own flat time", ratio(moe, first_ms(rows, bench="detect", what="flat as moe")),
         1.5, 1.1, at_most=True)
    line("2,304-tensor shard vs torch eager, tensor by tensor",
         ratio(first_ms(torch, bench="torch detect", what="eager, tensor by tensor"), moe), 8, 15)


def apply_targets(rows, torch):
    own = first_ms(rows, bench="apply", what="sorted", share=0.01)
    shuffled = first_ms(rows, bench="apply", what="shuffled", share=0.01)
    line("apply at 1 % vs index_copy_, sorted",
         ratio(first_ms(torch, bench="torch apply", what="index_copy_, sorted", share=0.01), own), 1.2, 2)
    line("apply at 1 % vs index_copy_, shuffled",
         ratio(first_ms(torch, bench="torch apply", what="index_copy_, shuffled", share=0.01), shuffled), 1.2, 2)
    line("apply at 1 % vs dense copy_", ratio(first_ms(torch, bench="torch apply", what="copy_"), own), 3, 5)
    for row in rows_with(rows, bench="apply", what="sorted", share=0.01):
        line("apply at 1 %, bytes of its model vs copy bandwidth", row["of_copy"], 0.4, 0.65, unit="%")


def wire_targets(rows):
    for row in rows_with(rows, bench="wire", what="decoding", share=0.01):
        # Steps are to come near their entropy; values as they are cannot.
        line(f"bytes a change at 1 %, {row['form']}", row["bytes_a_change"], 3.3, 1.5 if row["form"] == "steps" else 3.3,
             at_most=True, unit=" B")
        line(f"decoding at 1 %, {row['form']}: GB/s of weights", row["weights_GBps"], 20, 20, unit="")


def sweep_targets(rows):
    sweep = rows_with(rows, bench="sweep")
    if not sweep:
        return
    missed = sum(row["missed"] for row in sweep)
    weights = sum(row["elements"] for row in sweep)
    line(f"missed of {weights} weights in {len(sweep)} settings", float(missed), 0, 0, at_most=True, unit="")
    for rate in sorted({row["lr"] for row in sweep}):
        over = max(row["over_marked"] for row in rows_with(sweep, what="realistic", lr=rate))
        line(f"over-marked at lr {rate:g}, worst setting", over * 100, 0.01, 0.01, at_most=True, unit=" %")
    bare = max(row["missed_bare"] for row in rows_with(sweep, what="realistic"))
    guarded = max(row["missed_reference"] for row in rows_with(sweep, what="realistic"))
    print(f"  missed in one realistic setting, at most: {guarded} with the reference's margin, {bare} without any")


def others(rows, torch):
    print("\neverything else")
    for row in rows_with(rows, bench="ceiling") + rows_with(rows, bench="snapshot") + rows_with(rows, bench="cub") + [
            row for row in rows if row["bench"] in ("apply", "scan", "wire")] + [row for row in torch if row["bench"] != "torch"]:
        rest = "  ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                         for name, value in row.items() if name not in ("bench", "what"))
        print(f"  {row['bench']}, {row['what']}: {rest}")


def main(arguments):
    if len(arguments) != 2:
        print(__doc__)
        return 64
    rows, torch = load(arguments[0]), load(arguments[1])
    others(rows, torch)
    detect_tables(rows)
    print()
    detect_targets(rows, torch)
    apply_targets(rows, torch)
    wire_targets(rows)
    sweep_targets(rows)
    failed = rows_with(rows, bench="check", holds="NO")
    print(f"checks in the run: {len(rows_with(rows, bench='check'))}, {len(failed)} do not hold")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
