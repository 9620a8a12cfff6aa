#!/usr/bin/env python3
"""Runs sim_bench and the peers' programs in turns, and prints ratios of medians' pairs against must and aim.

usage: bench_peers.py ROUNDS     called by bench_peers.sh, which builds what this runs

Every round runs every program once, pinned to one core; a ratio is taken within a round, so that what the machine does
meanwhile touches both sides. The table has the median of the rounds' ratios, the least and the greatest. Times are
processor time, except that of two processes at once.
"""
import os
import subprocess
import sys
import time

OURS = "build/release/bench/sim_bench"
NS3 = "build/peers/phold_ns3"
SIMGRID = "build/peers/actors_simgrid"
PYTHON = "/usr/bin/python3"
QUIET = ["--cfg=contexts/factory:raw", "--log=root.thres:error"]
NS3_SCHEDULERS = ["PriorityQueue", "Map", "Heap"]  # The calendar collapses at 262 k: 10 us an event.

PROGRAMS = {
    "phold-1k": [OURS, "--one", "phold-1024x1"],
    "phold-262k": [OURS, "--one", "phold-16384x16"],
    "phold-1M": [OURS, "--one", "phold-65536x16"],
    "sleepers-1k": [OURS, "--one", "sleepers-1024"],
    "pingpong": [OURS, "--one", "pingpong"],
    "churn": [OURS, "--one", "churn-40"],
    "std phold-1k": [OURS, "--one", "phold-1024x1", "--reference"],
    "std phold-262k": [OURS, "--one", "phold-16384x16", "--reference"],
    "std phold-1M": [OURS, "--one", "phold-65536x16", "--reference"],
    "simgrid sleepers-1k": [SIMGRID, "sleepers", "1024", "200000"] + QUIET,
    "simgrid pingpong": [SIMGRID, "pingpong", "100000"] + QUIET,
    "simpy sleepers-1k": [PYTHON, "bench/peers/actors_simpy.py", "sleepers", "1024", "300000"],
    "simpy phold-1k": [PYTHON, "bench/peers/actors_simpy.py", "phold", "1024", "300000"],
    "simpy pingpong": [PYTHON, "bench/peers/actors_simpy.py", "pingpong", "100000"],
    "simpy churn": [PYTHON, "bench/peers/churn_simpy.py", "10"],
}
for scheduler in NS3_SCHEDULERS:
    PROGRAMS[f"ns3 {scheduler} phold-1k"] = [NS3, scheduler, "phold", "1024", "1", "1000000"]
    PROGRAMS[f"ns3 {scheduler} phold-262k"] = [NS3, scheduler, "phold", "16384", "16", "1000000"]
    PROGRAMS[f"ns3 {scheduler} pingpong"] = [NS3, scheduler, "pingpong", "1000000"]

# What is compared, ours, the peer, must, aim; a ratio is the peer's time over ours.
COMPARED = [
    ("ns-3, best scheduler: PHOLD, 1 k pending", "phold-1k", "ns3 phold-1k", 2, 4),
    ("SimGrid sleep_for, 1 k actors, vs PHOLD 1 k", "phold-1k", "simgrid sleepers-1k", 12, 25),
    ("the same work: SLEEPERS, 1 k actors", "sleepers-1k", "simgrid sleepers-1k", None, None),
    ("SimPy timeouts, 1 k actors, vs PHOLD 1 k", "phold-1k", "simpy sleepers-1k", 20, 45),
    ("the same work: SLEEPERS, 1 k actors", "sleepers-1k", "simpy sleepers-1k", None, None),
    ("the same work: PHOLD, 1 k pending", "phold-1k", "simpy phold-1k", None, None),
    ("std::priority_queue: PHOLD, 1 k pending", "phold-1k", "std phold-1k", None, None),
    ("ns-3, best scheduler: PHOLD, 262 k pending", "phold-262k", "ns3 phold-262k", 3, 5),
    ("std::priority_queue: PHOLD, 262 k pending", "phold-262k", "std phold-262k", 2, 3),
    ("ns-3, best scheduler: PINGPONG", "pingpong", "ns3 pingpong", 4, 6),
    ("SimGrid mailbox: PINGPONG", "pingpong", "simgrid pingpong", 80, 200),
    ("SimPy Store: PINGPONG", "pingpong", "simpy pingpong", 100, 250),
    ("SimPy: CHURN-16 events, one core", "churn", "simpy churn", 20, 60),
]
SLOWDOWN = ("PHOLD, 1 M pending over 1 k: ours", "phold-1M", "phold-1k", 2.0, 1.4)
SLOWDOWN_STD = ("the same for std::priority_queue", "std phold-1M", "std phold-1k", None, None)


def median(values):
    return sorted(values)[len(values) // 2]


def run_one(command, core):
    """ns an event, as the program says."""
    text = subprocess.run(["taskset", "-c", str(core)] + command, check=True, capture_output=True, text=True).stdout
    return float(text.split()[1])


def two_core_scaling(cores):
    """Seeds a second of two processes on two cores over those of one process on one."""
    command = [OURS, "--one", "churn-1000"]

    def wall(count):
        begin = time.monotonic()
        running = [subprocess.Popen(["taskset", "-c", str(core)] + command, stdout=subprocess.DEVNULL)
                   for core in cores[:count]]
        if any(process.wait() != 0 for process in running):
            raise SystemExit("bench_peers: churn failed")
        return time.monotonic() - begin

    return 2 * wall(1) / wall(2)


def verdict(value, must, aim, greater):
    if must is None:
        return "-"
    if value >= aim if greater else value <= aim:
        return "aim met"
    return "must met" if (value >= must if greater else value <= must) else "MISSED"


def print_row(label, ours, peer, ratios, bounds, greater=True):
    must, aim = bounds
    value = median(ratios)
    times = f"{ours:9.1f} {peer:9.1f}" if ours else " " * 19
    wanted = f"{must:>5g} {aim:>5g}" if must is not None else "    -     -"
    print(f"{label:<46} {times} {value:8.2f} {min(ratios):8.2f} {max(ratios):8.2f} {wanted}  "
          f"{verdict(value, must, aim, greater)}")


def main(rounds):
    cores = sorted(os.sched_getaffinity(0))
    results = {name: [] for name in PROGRAMS}
    scaling = []
    for done in range(rounds):
        for name, command in PROGRAMS.items():
            results[name].append(run_one(command, cores[-1]))
        if len(cores) > 1:
            scaling.append(two_core_scaling(cores))
        print(f"bench_peers: round {done + 1} of {rounds} done", file=sys.stderr, flush=True)
    for case in ["phold-1k", "phold-262k", "pingpong"]:
        best = min(NS3_SCHEDULERS, key=lambda scheduler: median(results[f"ns3 {scheduler} {case}"]))
        results[f"ns3 {case}"] = results[f"ns3 {best} {case}"]
        listed = ", ".join(f"{one} {median(results[f'ns3 {one} {case}']):.0f}" for one in NS3_SCHEDULERS)
        print(f"ns-3 {case}, ns an event: {listed}; best: {best}")
    print(f"{'peer and work, ns an event; ratios of ' + str(rounds) + ' rounds':<46} {'ours':>9} {'peer':>9} "
          f"{'ratio':>8} {'min':>8} {'max':>8} {'must':>5} {'aim':>5}")
    for label, ours, peer, must, aim in COMPARED:
        ratios = [b / a for a, b in zip(results[ours], results[peer])]
        print_row(label, median(results[ours]), median(results[peer]), ratios, (must, aim))
    for label, many, few, must, aim in [SLOWDOWN, SLOWDOWN_STD]:
        ratios = [a / b for a, b in zip(results[many], results[few])]
        print_row(label, median(results[many]), median(results[few]), ratios, (must, aim), greater=False)
    if scaling:
        print_row("CHURN-16 seeds, two processes on two cores", None, None, scaling, (1.8, 1.9))
    else:
        print("CHURN-16 on two cores: not measured, one core here")


if __name__ == "__main__":
    main(max(int(sys.argv[1]), 5))
