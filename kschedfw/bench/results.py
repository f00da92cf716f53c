"""What measurements come to."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import attrs

from kschedfw.bench.memo import PluginUse
from kschedfw.bench.workload import Placement


class Part(StrEnum):
    """How much of the scheduler is measured."""

    ALGORITHM = "algorithm"
    """`GenericScheduler.schedule` and `Cache.assume_pod`."""
    END_TO_END = "end-to-end"
    """`Scheduler` with an `InMemoryCluster`: from the queue to the binding, with all that the cluster tells back."""


@attrs.frozen
class Latency:
    """How long single attempts took, in seconds; percentiles are by nearest rank."""

    p50: float = 0.0
    p99: float = 0.0
    max: float = 0.0

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Latency:
        if not seconds:
            return cls()
        ordered = sorted(seconds)
        return cls(_percentile(ordered, 50), _percentile(ordered, 99), ordered[-1])


def _percentile(ordered: Sequence[float], percent: int) -> float:
    # In integers, so that no rounding error moves the rank.
    return ordered[(percent * len(ordered) + 99) // 100 - 1]


@attrs.frozen
class GarbageCollection:
    """How often the cyclic garbage collector ran within the attempts, and how long, in seconds."""

    collections: int = 0
    seconds: float = 0.0


@attrs.frozen
class Measurement:
    """What one workload came to, in one process.

    Of `wanted` pods `finished` were dealt with in `attempts`: placed, or found to fit nowhere; fewer than wanted if the
    time limit was reached. `seconds` is the time within attempts alone, `cpu_seconds` the processor's time in them, of
    all threads: on a machine that others use, too, it says more. `create_seconds` is what it took to create
    the pods in the cluster, which puts them into the queue; it isn't part of `seconds`, and 0 where the
    algorithm alone is measured. `peak_resident_bytes` is the whole process's, with Python and all objects.
    `plugins` says how often those that filter or score were asked. `places` are the nodes of the measured pods, in the
    order in which they were tried, empty for one that fit nowhere; only where the algorithm alone is measured.
    """

    workload: str
    part: Part
    percentage: int
    nodes: int
    initial_pods: int
    placement: Placement
    wanted: int
    finished: int
    placed: int
    attempts: int
    seconds: float
    cpu_seconds: float
    latency: Latency
    garbage_collection: GarbageCollection
    plugins: tuple[PluginUse, ...] = ()
    create_seconds: float = 0.0
    peak_resident_bytes: int | None = None
    places: tuple[str, ...] = ()

    @property
    def pods_per_second(self) -> float:
        return self.finished / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_per_pod(self) -> float:
        return self.seconds / self.finished if self.finished else 0.0

    @property
    def cpu_seconds_per_pod(self) -> float:
        return self.cpu_seconds / self.finished if self.finished else 0.0

    def to_json(self) -> dict[str, object]:
        """The measurement in types that `json.dumps` knows; the keys are part of kschedfw's interface."""
        return {
            "workload": self.workload,
            "part": self.part.value,
            "percentage": self.percentage,
            "nodes": self.nodes,
            "initialPods": self.initial_pods,
            "initialPlacement": self.placement.value,
            "pods": {"wanted": self.wanted, "finished": self.finished, "placed": self.placed},
            "attempts": self.attempts,
            "seconds": self.seconds,
            "cpuSeconds": self.cpu_seconds,
            "cpuSecondsPerPod": self.cpu_seconds_per_pod,
            "podsPerSecond": self.pods_per_second,
            "latencySeconds": attrs.asdict(self.latency),
            "createSeconds": self.create_seconds,
            "garbageCollection": attrs.asdict(self.garbage_collection),
            "peakResidentBytes": self.peak_resident_bytes,
            "plugins": [use.to_json() for use in self.plugins],
        }
