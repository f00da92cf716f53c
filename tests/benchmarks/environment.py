"""How fast an environment steps: `python -m tests.benchmarks.environment`.

Episodes on 1,000 nodes of three sizes, with 5,000 pods of nine kinds. The agent costs next to nothing: it takes a
feasible node at random, or random weights. Only the steps are timed, neither the reset nor the agent. Times are those
of the process's CPU, for which other processes on the machine hardly count; the wall clock's are beside them. Garbage
is collected as often as in the command and in workers of a sweep.
"""

from __future__ import annotations

import argparse
import gc
import time
from random import Random
from statistics import median

import numpy as np
from kschedfw_lab import Environment

from kschedfw import make_node, make_pod
from kschedfw.api.meta import Named

NODES = 1_000
PODS = 5_000


def workload(seed: int) -> list[Named]:
    random = Random(seed)
    made: list[Named] = [
        make_node(f"node-{i}").capacity(cpu=[16, 32, 64][i % 3], memory="64Gi").build() for i in range(NODES)
    ]
    for i in range(PODS):
        cpu, memory = random.choice([1, 2, 4]), f"{random.choice([1, 2, 4])}Gi"
        made.append(make_pod(f"pod-{i}").requests(cpu=cpu, memory=memory).build())
    return made


def episode(environment: Environment, seed: int, actions: str) -> tuple[float, float]:
    """Steps per second of the CPU's time, and of the wall clock's."""
    environment.reset(seed=seed)
    random = np.random.default_rng(seed)
    cpu = wall = 0.0
    steps, ended = 0, False
    while not ended:
        if actions == "weights":
            action = random.random(len(environment.score_plugins), dtype=np.float32)
        else:
            rows = environment.action_masks().nonzero()[0]
            action = rows[random.integers(len(rows))]
        begun_cpu, begun = time.process_time(), time.perf_counter()
        ended = environment.step(action)[2]
        cpu, wall = cpu + time.process_time() - begun_cpu, wall + time.perf_counter() - begun
        steps += 1
    return steps / cpu, steps / wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5)
    episodes = parser.parse_args().episodes
    gc.set_threshold(20_000)
    print(f"{NODES:,} nodes, {PODS:,} pods, {episodes} episodes; steps/s")
    print(f"{'actions':10}{'median, CPU':>14}{'best, CPU':>14}{'median, wall':>14}{'best, wall':>14}")
    for actions in ("nodes", "weights"):
        environment = Environment(workload, actions=actions)
        episode(environment, 0, actions)  # what is compiled or imported late
        cpu, wall = zip(
            *(episode(environment, seed, actions) for seed in range(1, episodes + 1)), strict=True
        )
        figures = median(cpu), max(cpu), median(wall), max(wall)
        print(f"{actions:10}" + "".join(f"{each:14,.0f}" for each in figures))


if __name__ == "__main__":
    main()
