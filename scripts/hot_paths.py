#!/usr/bin/env python3
"""Counts the instructions of five hot paths and compares them with what they were.

usage: hot_paths.py [--update] [PROGRAM]     default: build/release/bench/hot_paths

Each path of bench/hot_paths.tsv runs once under callgrind (valgrind), which counts what is executed within it: the same
number on a busy machine as on a quiet one. A path that takes more than 3 % more instructions an event than the table says
fails, and so does one that did something else than the table says; one that takes 3 % less is said to have become
cheaper. --update writes the table anew. The numbers are those of g++ 12 at -O2 on a processor with AVX2: libxxhash and the
C library choose their code by what the processor has, and valgrind shows them nothing beyond AVX2.

Exit: 0 within bounds; 1 a path became dearer, or did not run; 69 no valgrind, no AVX2, or another compiler than the table's.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "hot_paths.tsv"
BOUND = 0.03
PATHS = ["queue", "digest", "blocks", "replay", "judged"]


def compiler_of(program):
    """What the release build was compiled with, as its cache says; a short text."""
    cache = program.parent.parent / "CMakeCache.txt"
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache.read_text(), re.M) if cache.exists() else None
    if not found:
        return "unknown"
    said = subprocess.run([found[1], "--version"], capture_output=True, text=True, check=True).stdout
    return "g++ " + re.search(r"(\d+)\.\d+\.\d+", said)[1] if "Free Software" in said else said.splitlines()[0]


def count(program, path):
    """Instructions and events of a path, and its check."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no",
               "--toggle-collect=areal_measured", str(program), path]
    done = subprocess.run(command, capture_output=True, text=True)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not collected:
        print(f"{path}: did not run\n{done.stdout}{done.stderr}")
        return None
    _, events, check = done.stdout.split()
    return int(collected[1]), int(events), check


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    rest = [argument for argument in arguments if argument != "--update"]
    if len(rest) > 1 or any(argument.startswith("-") for argument in rest):
        sys.exit(__doc__)
    program = pathlib.Path(rest[0]) if rest else ROOT / "build/release/bench/hot_paths"
    if not any(os.access(pathlib.Path(folder) / "valgrind", os.X_OK) for folder in os.environ["PATH"].split(":")):
        print("hot paths: no valgrind here")
        return 69
    if " avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        print("hot paths: no AVX2 here")
        return 69
    compiler = compiler_of(program)
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    known = {line.split("\t")[0]: line.split("\t")[1:] for line in lines if not line.startswith("#")}
    of_table = lines[0].removeprefix("# ").split(":")[0] if lines else compiler
    if not update and of_table != compiler:
        print(f"hot paths: the table is of {of_table}, the program of {compiler}")
        return 69
    now, dearer, other = {}, [], []
    print(f"{'path':<8} {'events':>8} {'instructions/event':>19} {'before':>8} {'change':>8}")
    for path in PATHS:
        counted = count(program, path)
        if counted is None:
            return 1
        each = counted[0] / counted[1]
        now[path] = f"{each:.1f}\t{counted[2]}"
        before, check = (each, counted[2]) if update else known[path]
        before = float(before)
        change = each / before - 1
        word = "DEARER" if change > BOUND else "cheaper" if change < -BOUND else ""
        if check != counted[2]:
            other.append(path)
            word = f"OTHER WORK: {counted[2]}, not {check}"
        if change > BOUND:
            dearer.append(path)
        print(f"{path:<8} {counted[1]:>8,} {each:>19.1f} {before:>8.1f} {change:>+8.1%} {word}")
    if update:
        head = f"# {compiler}: instructions an event and what came out, by scripts/hot_paths.py --update"
        TABLE.write_text("\n".join([head] + [f"{path}\t{each}" for path, each in now.items()]) + "\n")
        return 0
    print(f"{len(PATHS)} paths, {len(dearer)} dearer by more than {BOUND:.0%}, {len(other)} of other work"
          + "".join(f" {path}" for path in dearer + other))
    return 1 if dearer or other else 0


if __name__ == "__main__":
    sys.exit(main())
