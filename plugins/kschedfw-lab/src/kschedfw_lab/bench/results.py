"""The results of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import attrs

from kschedfw_lab.bench.memo import PluginUse
from kschedfw_lab.bench.workload import Placement


class Part(StrEnum):
    """The part of the scheduler that is measured."""

    ALGORITHM = "algorithm"
    """`GenericScheduler.schedule` and `Cache.assume_pod`."""
    END_TO_END = "end-to-end"
    """`Scheduler` with an `InMemoryCluster`: from the queue to the binding, including the cluster's events."""


@attrs.frozen
class Latency:
    """The durations of attempts in seconds; percentiles are by nearest rank."""

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
    # Computed in integers, so that no rounding error changes the rank.
    return ordered[(percent * len(ordered) + 99) // 100 - 1]


@attrs.frozen
class GarbageCollection:
    """The number of runs of the cyclic garbage collector during the attempts, and their duration in seconds."""

    collections: int = 0
    seconds: float = 0.0


@attrs.frozen
class Measurement:
    """The result of one workload, in one process.

    `finished` of the `wanted` pods were placed or found to fit nowhere, in `attempts`. `finished` is less than `wanted`
    if the time limit was reached. `seconds` is the duration of the attempts. `cpu_seconds` is the processor's time in
    them, of all threads; it is the better figure on a shared machine. `create_seconds` is the time to create the pods
    in the cluster, which adds them to the queue. It isn't part of `seconds`, and 0 if only the algorithm is measured.

    `peak_resident_bytes` is that of the whole process, with Python and all objects. `plugins` says how often filter and
    score plugins were called.

    Only for the algorithm: `places` are the nodes of the measured pods in the order of their attempts, empty for a pod
    that fits nowhere. `calls_per_pod` is the median number of Python function calls in the attempts of further pods; it
    doesn't depend on the machine.

    With groups, an attempt is that of all `members` of a group, on `racks` placements.
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
    calls_per_pod: int | None = None
    members: int = 0
    racks: int = 0

    @property
    def pods_per_second(self) -> float:
        return self.finished / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_per_pod(self) -> float:
        return self.seconds / self.finished if self.finished else 0.0

    @property
    def cpu_seconds_per_pod(self) -> float:
        return self.cpu_seconds / self.finished if self.finished else 0.0

    @property
    def cpu_seconds_per_attempt(self) -> float:
        return self.cpu_seconds / self.attempts if self.attempts else 0.0

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
            "group": {"members": self.members, "racks": self.racks} if self.members else None,
            "attempts": self.attempts,
            "seconds": self.seconds,
            "cpuSeconds": self.cpu_seconds,
            "cpuSecondsPerPod": self.cpu_seconds_per_pod,
            "callsPerPod": self.calls_per_pod,
            "podsPerSecond": self.pods_per_second,
            "latencySeconds": attrs.asdict(self.latency),
            "createSeconds": self.create_seconds,
            "garbageCollection": attrs.asdict(self.garbage_collection),
            "peakResidentBytes": self.peak_resident_bytes,
            "plugins": [use.to_json() for use in self.plugins],
        }
