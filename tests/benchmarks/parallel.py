"""What several schedulers on one shared state bring, as threads and as processes.

    python -m tests.benchmarks.parallel [NODES PODS [ROUNDS]]   by default 1,000 and 600, and 3 rounds

Each scheduler has its share of the pods, by hash; all are there before the clock starts. Rounds go through all settings
in turn, so that what else the machine does hits them alike; the median of the rounds is shown.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from random import Random
from statistics import median
from zlib import crc32

import attrs
from kschedfw_lab.cell import OptimisticScheduler, SharedState, StillFits
from kschedfw_lab.cell.parallel import RemoteState, StateServer, run_in_threads, schedule_until

from kschedfw import InMemoryCluster, Pod, make_node, make_pod

ROOM = 4
SCHEDULERS = (1, 2, 4)
PATIENCE = 60.0
"""Seconds after which a child process is given up."""


@attrs.frozen
class Kind:
    """Pods whose decisions cost little, or much."""

    name: str
    make: Callable[[int], Pod]


def plain(number: int) -> Pod:
    return make_pod(f"p{number}").requests(cpu=1).labels(app="web").build()


def spread(number: int) -> Pod:
    """A pod that is spread over zones, and is alone on its node among those of its app."""
    app = f"app-{number % 50}"
    return (
        make_pod(f"p{number}")
        .requests(cpu=1)
        .labels(app=app)
        .pod_anti_affinity("kubernetes.io/hostname", {"app": app})
        .spread("topology.kubernetes.io/zone", {"app": app}, max_skew=5)
        .build()
    )


KINDS = (Kind("plain pods", plain), Kind("pods with anti-affinity and spreading", spread))


def state_of(kind: Kind, nodes: int, pods: int) -> SharedState:
    truth = InMemoryCluster(
        make_node(f"n{number}")
        .labels({"topology.kubernetes.io/zone": f"z{number % 10}", "kubernetes.io/hostname": f"n{number}"})
        .capacity(cpu=ROOM)
        .build()
        for number in range(nodes)
    )
    for number in range(pods):
        truth.add(kind.make(number))
    return SharedState(truth, StillFits(truth))


def is_placed(state: SharedState) -> bool:
    return all(pod.node_name for pod in state.truth.list(Pod))


def share(part: int, parts: int) -> Callable[[Pod], bool]:
    return lambda pod: crc32(pod.name.encode()) % parts == part


def seconds_of_threads(state: SharedState, schedulers: int) -> float:
    """How long so many threads take for all pods."""
    members = [
        OptimisticScheduler(state, random=Random(part), is_mine=share(part, schedulers))
        for part in range(schedulers)
    ]
    begun = time.perf_counter()
    run_in_threads(members, Patient(state))
    return time.perf_counter() - begun


class Patient:
    """Whether all pods are placed, looked at every now and then: looking takes time, too."""

    def __init__(self, state: SharedState) -> None:
        self._state, self._next = state, 0.0

    def __call__(self) -> bool:
        now = time.perf_counter()
        if now < self._next:
            return False
        self._next = now + 0.05
        return is_placed(self._state)


def work(connection: Connection, part: int, parts: int, ready: Event, go: Event, done: Event) -> None:
    """A child process: a scheduler with its share."""
    scheduler = OptimisticScheduler(RemoteState(connection), random=Random(part), is_mine=share(part, parts))
    ready.set()
    go.wait()
    schedule_until(scheduler, done.is_set)


def seconds_of_processes(state: SharedState, schedulers: int) -> float:
    """How long so many processes take for all pods, without their start."""
    server, context = StateServer(state), multiprocessing.get_context("spawn")
    go, done = context.Event(), context.Event()
    ready = [context.Event() for _ in range(schedulers)]
    children = [
        context.Process(target=work, args=(server.connect(), part, schedulers, ready[part], go, done))
        for part in range(schedulers)
    ]
    for child in children:
        child.start()
    for each in ready:
        each.wait()
    begun = time.perf_counter()
    go.set()
    while not is_placed(state):
        time.sleep(0.01)
    seconds = time.perf_counter() - begun
    done.set()
    for child in children:
        child.join(PATIENCE)
    return seconds


WAYS = {"threads": seconds_of_threads, "processes": seconds_of_processes}


def main(arguments: Sequence[str]) -> None:
    numbers = [int(each) for each in arguments]
    nodes, pods = numbers[:2] if len(numbers) > 1 else (1000, 600)
    rounds = numbers[2] if len(numbers) > 2 else 3
    gil = "without" if sysconfig.get_config_var("Py_GIL_DISABLED") else "with"
    print(
        f"Python {platform.python_version()} {gil} the global interpreter lock, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; {nodes} nodes, {pods} pods, median of {rounds}: pods/s"
    )
    for kind in KINDS:
        found: dict[tuple[str, int], list[float]] = {(way, count): [] for way in WAYS for count in SCHEDULERS}
        for _ in range(rounds):
            for (way, count), rates in found.items():
                state = state_of(kind, nodes, pods)
                rates.append(pods / WAYS[way](state, count))
                load = Counter(pod.node_name for pod in state.truth.list(Pod))
                assert max(load.values()) <= ROOM, "a node is overcommitted"
        for way in WAYS:
            told = ", ".join(f"{count}: {median(found[way, count]):.0f}" for count in SCHEDULERS)
            print(f"{kind.name}, {way}: {told}")


if __name__ == "__main__":
    main(sys.argv[1:])
