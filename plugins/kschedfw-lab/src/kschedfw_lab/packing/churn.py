"""One run of a policy on pods that arrive and leave: how many are refused, how machines are used, what is stranded."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final

from kschedfw import Pod
from kschedfw.api import CPU, MEMORY
from kschedfw_lab.compare import NodeAllocation, RequestMix, fragmentation
from kschedfw_lab.openb import GPU
from kschedfw_lab.packing.compaction import compacted
from kschedfw_lab.packing.loss_system import LossSystem
from kschedfw_lab.packing.policies import Policy
from kschedfw_lab.packing.workload import LARGE, Trace, gpus_of, read_trace
from kschedfw_lab.reproduction import Measured

LOAD: Final = 0.8
"""The GPUs that running pods would request if none had been refused, as a share of the machines' GPUs."""

LIFETIMES: Final = 1.5
"""The duration of a run, in mean lifetimes of pods. Only the second half is measured."""

SAMPLES: Final = 10
"""The number of times at which the machines are measured."""

_NAMES: Final = {CPU: "cpu", MEMORY: "memory", GPU: "gpus"}


def measure(nodes: Path, pods: Path, policy: Policy, seed: int) -> Measured:
    """Return all metrics of a policy with a seed."""
    trace = read_trace(nodes, pods)
    return {
        **churn(trace, policy, seed),
        "machines": compacted(trace, policy, seed),
        "machines.without_gpus": compacted(trace.without_gpus(), policy, seed),
    }, {}


def churn(trace: Trace, policy: Policy, seed: int, lifetimes: float = LIFETIMES) -> Mapping[str, float]:
    """Let pods arrive and leave, and return the metrics.

    Pods are drawn from the trace with replacement. They arrive as a Poisson process and stay for an exponentially
    distributed time. At the start there are as many as make the load. All of this depends only on the seed, so that it
    is the same under each policy. A pod that fits nowhere is refused.
    """
    chance = Random(f"churn {seed}")
    nodes = trace.shuffled_nodes(chance)
    running = round(LOAD * trace.gpus / trace.gpus_per_pod)
    counted = _Counted()
    # A heap. The number makes items distinct, since pods can't be compared.
    leaving: list[tuple[float, int, Pod]] = []
    samples: list[Sequence[NodeAllocation]] = []
    due = [lifetimes * (0.5 + 0.5 * (number + 1) / SAMPLES) for number in range(SAMPLES)]
    with LossSystem(nodes, policy, Random(seed)) as system:

        def pass_until(time: float) -> None:
            while leaving and leaving[0][0] <= time:
                system.remove(heapq.heappop(leaving)[2])

        for order, (time, stay, pod) in enumerate(_arrivals(trace, running, lifetimes, chance)):
            while due and due[0] <= time:
                pass_until(due.pop(0))
                samples.append(system.allocations())
            pass_until(time)
            placed = system.place(pod)
            if placed is not None:
                heapq.heappush(leaving, (time + stay, order, placed))
            if time > lifetimes / 2:
                counted.add(pod, is_refused=placed is None)
        for time in due:
            pass_until(time)
            samples.append(system.allocations())
    return {**counted.metrics(), **_of_machines(samples, RequestMix.of(trace.pods))}


def _arrivals(
    trace: Trace, running: int, lifetimes: float, chance: Random
) -> Iterator[tuple[float, float, Pod]]:
    """Yield each pod with its time of arrival and its stay, both in mean lifetimes."""
    for _ in range(running):
        # The exponential distribution has no memory: what is left of a stay is distributed as a whole one.
        yield 0.0, chance.expovariate(1.0), chance.choice(trace.pods)
    # By Little's law, as many pods arrive in a mean lifetime as are to run.
    time = chance.expovariate(running)
    while time < lifetimes:
        yield time, chance.expovariate(1.0), chance.choice(trace.pods)
        time += chance.expovariate(running)


class _Counted:
    """The numbers of arrived and refused pods, and of large ones among them."""

    def __init__(self) -> None:
        self._arrived = self._refused = self._large = self._refused_large = 0

    def add(self, pod: Pod, *, is_refused: bool) -> None:
        self._arrived += 1
        self._refused += is_refused
        if gpus_of(pod) >= LARGE:
            self._large += 1
            self._refused_large += is_refused

    def metrics(self) -> Mapping[str, float]:
        return {
            "arrived": self._arrived,
            "arrived.large": self._large,
            "refused": self._refused / self._arrived if self._arrived else 0.0,
            "refused.large": self._refused_large / self._large if self._large else 0.0,
        }


def _of_machines(samples: Sequence[Sequence[NodeAllocation]], workload: RequestMix) -> Mapping[str, float]:
    metrics: dict[str, float] = {}
    for resource, name in _NAMES.items():
        metrics[f"utilisation.{name}"] = fmean(_utilisation(nodes, resource) for nodes in samples)
    parts = [{part.resource: part.share for part in fragmentation(nodes, workload)} for nodes in samples]
    for resource, name in _NAMES.items():
        metrics[f"stranded.{name}"] = fmean(shares[resource] for shares in parts)
    metrics["empty_machines"] = fmean(sum(not node.pods for node in nodes) for nodes in samples)
    metrics["room.large"] = fmean(sum(node.free(GPU) >= LARGE for node in nodes) for nodes in samples)
    return metrics


def _utilisation(nodes: Sequence[NodeAllocation], resource: str) -> float:
    offered = sum(node.allocatable.get(resource, 0) for node in nodes)
    return sum(node.requested.get(resource, 0) for node in nodes) / offered if offered else 0.0
