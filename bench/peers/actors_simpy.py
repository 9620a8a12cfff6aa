"""SLEEPERS, PHOLD and PINGPONG in SimPy: prints `CASE ns-per-event events` of processor time.

usage: actors_simpy.py sleepers COUNT EVENTS | phold COUNT EVENTS | pingpong EVENTS

Draws come from Python's own generator: the cheapest that a user of SimPy has.
"""
import random
import sys
import time

import simpy


def sleeper(env, expovariate):
    while True:
        yield env.timeout(1.0 + expovariate(1.0))


class Phold:
    """An event is a timeout with a callback, SimPy's cheapest way; a quarter of them go to any actor."""

    def __init__(self, env, count):
        self.env, self.count, self.seen = env, count, [0] * count
        for actor in range(count):
            self.post(actor)

    def post(self, actor):
        timeout = self.env.timeout(1000 + random.expovariate(1.0) * 1000, actor)
        timeout.callbacks.append(self.happen)

    def happen(self, event):
        actor = event.value
        self.seen[actor] += 1
        self.post(random.randrange(self.count) if random.random() <= 0.25 else actor)


def player(env, mine, theirs, first):
    value = 0
    if first:
        theirs.put(0)
    while True:
        value = (yield mine.get()) + 1
        yield env.timeout(1e-6)
        theirs.put(value)


def steps(env, count):
    """Runs until `count` events of the model happened; SimPy handles as many, or more inner ones."""
    step = env.step
    for _ in range(count):
        step()


def main(arguments):
    random.seed(1)
    env = simpy.Environment()
    kind, events = arguments[0], int(arguments[-1])
    name, per_event = f"simpy-{kind}", 1
    if kind == "sleepers":
        for _ in range(int(arguments[1])):
            env.process(sleeper(env, random.expovariate))
        steps(env, int(arguments[1]))  # Each process begins with an event of its own.
        name += f"-{arguments[1]}"
    elif kind == "phold":
        Phold(env, int(arguments[1]))
        name += f"-{arguments[1]}x1"
    else:
        a, b = simpy.Store(env), simpy.Store(env)
        env.process(player(env, a, b, True))
        env.process(player(env, b, a, False))
        per_event = 3  # A message is a get, a put and a timeout.
    begin = time.process_time_ns()
    steps(env, events * per_event)
    print(f"{name} {(time.process_time_ns() - begin) / events:.3f} {events}")


main(sys.argv[1:])
