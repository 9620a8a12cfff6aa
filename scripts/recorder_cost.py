#!/usr/bin/env python3
"""What recording costs whole programs: a simulated run with and without it, and the processes of a real run.

usage: recorder_cost.py [--build DIR] [--pairs N] [sim] [real]      both, if neither is named

sim   scenarios/failover.yaml in turns without and with --record: wall time on all cores, and confined to one (where the
      run's own thread writes); then replayed, against the run without --record.
real  scenarios/real_small.yaml: the share of all processes' CPU time that their recorders took. Real processes always
      record, so there is no run without; each process notes both times beside its recording.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, cores=None):
    """Wall seconds and standard output of a command that must end with 0."""
    before = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=before)
    wall = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return wall, done.stdout


def spread(values, unit=" %", digits=1):
    middle, least, most = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle}{unit} (median of {len(values)}, {least} to {most})"


def simulated(areal_sim, pairs, folder):
    command = [areal_sim, ROOT / "scenarios/failover.yaml", "--seed", "1", "--quiet"]
    record = command + ["--record", folder / "run.db"]
    one_core = {min(os.sched_getaffinity(0))}
    for name, cores in (("all cores", None), ("one core", one_core)):
        run(record, cores)  # Warms the page cache up.
        more, bare = [], run(command, cores)[0]
        for _ in range(pairs):
            recorded = run(record, cores)[0]
            again = run(command, cores)[0]
            more.append((recorded / ((bare + again) / 2) - 1) * 100)
            bare = again
        print(f"failover.yaml, {name}: recorded it takes {spread(more)} more time")
    speeds, bare = [], run(command)[0]
    for _ in range(pairs):
        replayed = run([areal_sim, "replay", folder / "run.db"])[0]
        again = run(command)[0]
        speeds.append((bare + again) / 2 / replayed)
        bare = again
    print(f"failover.yaml: replayed with every line compared at {spread(speeds, '', 2)} of the speed of the run")
    events = int(re.search(r"events ([\d,]+)", run(command)[1])[1].replace(",", ""))
    size = (folder / "run.db").stat().st_size
    print(f"failover.yaml: {size} bytes, {size / events:.1f} an event")


def real(areal_sim, pairs, folder):
    shares, cpu, recording = [], [], []
    for pair in range(pairs):
        command = [areal_sim, "real", ROOT / "scenarios/real_small.yaml", "--backend", "gloo", "--seed", str(pair + 1),
                   "--record", folder / "real.db", "--keep"]
        _, text = run(command)
        kept = pathlib.Path(re.search(r"recordings and logs in (\S+)", text)[1])
        notes = [json.loads(file.read_text()) for file in kept.rglob("*.meta.json")]
        shutil.rmtree(kept, ignore_errors=True)
        cpu.append(sum(float(note["cpu_seconds"]) for note in notes))
        recording.append(sum(float(note["recorder_cpu_seconds"]) for note in notes))
        shares.append(recording[-1] / cpu[-1] * 100)
    print(f"real_small.yaml: recorders take {spread(shares)} of the CPU time of {len(notes)} processes "
          f"({statistics.median(recording):.3f} of {statistics.median(cpu):.2f} s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--pairs", default=5, type=int)
    parser.add_argument("what", nargs="*", choices=["sim", "real", []])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in (("sim", simulated), ("real", real)):
            if not arguments.what or name in arguments.what:
                measure(arguments.build / "areal-sim", arguments.pairs, pathlib.Path(folder))


if __name__ == "__main__":
    main()
