"""What a very large cluster takes in one process: memory by node and by pod, and time by pod that differs.

    python -m tests.benchmarks.scale [NODES PODS MEASURED]   by default 100,000, 1,000,000 and 2,000

The pods are on their nodes when the scheduler starts, as after a restart. Then pods that all request something else are
scheduled from the queue to the binding, with kube-scheduler's default sampling of nodes and with all nodes.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import attrs

from kschedfw import InMemoryCluster, Node, Pod, Scheduler, default_profile, make_node, make_pod

_GOLDEN = 0x9E3779B1  # spreads consecutive numbers over the whole range
_ZONES = 10


@attrs.frozen
class Measured:
    """The cost of one part: seconds of processor time, and the bytes that the process has more after it."""

    seconds: float
    grown: int


class Meter:
    """Measures the parts of one process, one after another."""

    def __init__(self) -> None:
        self._seconds, self._resident = time.process_time(), resident()

    def lap(self) -> Measured:
        """Return what the part since the last lap cost."""
        seconds = time.process_time() - self._seconds
        # Only for the memory: a collection of a million pods takes seconds, which no scheduler spends.
        gc.collect()
        now = resident()
        measured = Measured(seconds, now - self._resident)
        self._seconds, self._resident = time.process_time(), now
        return measured


def resident() -> int:
    """Return the bytes that the process has in memory now; where the system doesn't tell, the most it ever had."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def node(number: int) -> Node:
    builder = make_node(f"node-{number}").capacity(cpu=32, memory="256Gi", pods=110)
    return builder.labels({"topology.kubernetes.io/zone": f"zone-{number % _ZONES}"}).build()


def running(number: int, nodes: int) -> Pod:
    """A pod of one of a thousand workloads, on its node."""
    builder = make_pod(f"running-{number}").labels(app=f"app-{number % 1000}")
    return (
        builder.requests(cpu=f"{100 + number % 7 * 50}m", memory="512Mi")
        .node(f"node-{number % nodes}")
        .build()
    )


def differing(number: int) -> Pod:
    """A pod that requests what no other one does."""
    spread = number * _GOLDEN % 2**32
    builder = make_pod(f"new-{number}").labels(app=f"new-{number}")
    return builder.requests(cpu=f"{500 + spread % 1500}m", memory=f"{256 + spread // 7 % 4000}Mi").build()


def parts(nodes: int, pods: int, measured: int) -> Iterator[tuple[str, Measured, int]]:
    """Yield each part's name, its cost, and the number of things that it was about."""
    meter = Meter()
    cluster = InMemoryCluster(node(number) for number in range(nodes))
    yield "nodes in the cluster", meter.lap(), nodes
    for number in range(pods):
        cluster.add(running(number, nodes))
    yield "pods on them", meter.lap(), pods
    numbers = iter(range(10**9))
    for percentage in (0, 100):
        profile = attrs.evolve(default_profile(), percentage_of_nodes_to_score=percentage)
        scheduler = Scheduler(cluster, [profile], random=Random(1))
        for _ in range(100):
            cluster.add(differing(next(numbers)))
        while scheduler.schedule_one():
            pass
        yield f"a start, and 100 pods to warm up ({percentage} %)", meter.lap(), 1
        for _ in range(measured):
            cluster.add(differing(next(numbers)))
        meter.lap()
        while scheduler.schedule_one():
            pass
        yield f"pods that differ ({percentage} %; 0 is the default sampling)", meter.lap(), measured
        scheduler.close()


def main(arguments: list[str]) -> None:
    nodes, pods, measured = map(int, arguments or ("100000", "1000000", "2000"))
    print(f"{nodes:,} nodes, {pods:,} pods on them, {measured:,} pods that differ")
    for name, cost, count in parts(nodes, pods, measured):
        print(
            f"{name:<60} {cost.seconds:8.1f} s  {1e6 * cost.seconds / count:10.0f} µs each  "
            f"{cost.grown / 2**20:8.0f} MiB  {cost.grown / count:8.0f} bytes each",
            flush=True,
        )
    print(f"in memory at the end: {resident() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main(sys.argv[1:])
