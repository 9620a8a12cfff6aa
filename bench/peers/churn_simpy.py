"""CHURN-16 in SimPy, the model of bench/scheduler/churn.h: prints `churn-simpy ns-per-event events seeds/s`.

usage: churn_simpy.py SEEDS
"""
import random
import sys
import time

import simpy

ENGINES, RANKS, STALENESS, BATCH, END = 16, 4, 2, 28, 600.0


class Process:
    def __init__(self, is_engine):
        self.is_engine, self.alive, self.found = is_engine, False, False
        self.last_beat, self.version, self.parts = 0.0, 0, []


class Churn:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.env = simpy.Environment()
        self.processes = [Process(i < ENGINES) for i in range(ENGINES + RANKS)]
        self.version = self.ready = 0
        self.step = None
        self.events = self.crashes = self.samples = self.dropped = self.steps = 0
        for process in self.processes:
            self.come_up(process)
        self.env.process(self.monitor())
        self.env.run(until=END)

    def come_up(self, process):
        process.alive, process.found = True, False
        process.last_beat, process.version = self.env.now, self.version
        process.parts = [self.env.process(self.beat(process))]
        self.env.process(self.live(process))
        if process.is_engine:
            process.parts.append(self.env.process(self.generate(process)))
        else:
            self.begin_step()

    def beat(self, process):
        try:
            while True:
                yield self.env.timeout(1.0)
                self.events += 1
                process.last_beat = self.env.now
        except simpy.Interrupt:
            pass

    def live(self, process):
        yield self.env.timeout(self.random.expovariate(1 / 200))
        self.events += 1
        self.crashes += 1
        process.alive = False
        for part in process.parts:
            part.interrupt()
        if not process.is_engine and self.step is not None:
            self.step.interrupt()

    def monitor(self):
        while True:
            yield self.env.timeout(1.0)
            self.events += 1
            for process in self.processes:
                if not process.found and self.env.now - process.last_beat > 3.0:
                    process.found = True
                    self.env.process(self.restart(process))

    def restart(self, process):
        yield self.env.timeout(20.0)
        self.events += 1
        self.come_up(process)

    def generate(self, process):
        try:
            while True:
                version = process.version
                yield self.env.timeout(self.random.expovariate(1.0))
                self.events += 1
                self.samples += 1
                if self.version - version <= STALENESS:
                    self.ready += 1
                    self.begin_step()
                else:
                    self.dropped += 1
        except simpy.Interrupt:
            pass

    def begin_step(self):
        ready = self.step is None and self.ready >= BATCH
        if ready and all(process.alive for process in self.processes[ENGINES:]):
            self.ready -= BATCH
            self.step = self.env.process(self.train())

    def train(self):
        try:
            yield self.env.all_of([self.env.timeout(1.5) for _ in range(RANKS)])
        except simpy.Interrupt:
            self.step = None
            return
        self.events += RANKS
        self.steps += 1
        self.version += 1
        self.step = None
        for process in self.processes[:ENGINES]:
            if process.alive:
                update = self.env.timeout(0.05, (process, self.version))
                update.callbacks.append(self.updated)
        self.begin_step()

    def updated(self, event):
        self.events += 1
        process, version = event.value
        if process.alive:
            process.version = version


def main():
    seeds = int(sys.argv[1])
    begin = time.process_time_ns()
    runs = [Churn(seed) for seed in range(1, seeds + 1)]
    spent = time.process_time_ns() - begin
    events = sum(run.events for run in runs)
    print(f"simpy-churn-{seeds} {spent / events:.3f} {events} crashes {sum(run.crashes for run in runs)} "
          f"samples {sum(run.samples for run in runs)} steps {sum(run.steps for run in runs)}")


main()
