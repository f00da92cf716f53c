"""The report of a simulation: counts, reasons, utilisation, spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import attrs

from kschedfw.api.admission import RefusedPod
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.records import frozen
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kschedfw.api.words import counted
from kschedfw.cluster import MissingObject
from kschedfw.explain import SCHEMA_VERSION
from kschedfw.framework.metrics import PluginSeries
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.simulator.decision import Decision, Outcome


@frozen
class Spread:
    """The distribution of a quantity over nodes or pods.

    `p95` is by nearest rank (the smallest value that at least 95 % of them don't exceed); `stddev` is the
    population's. All are 0 if there are no values.
    """

    min: float = 0.0
    mean: float = 0.0
    p95: float = 0.0
    max: float = 0.0
    stddev: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        ordered = sorted(values)
        if not ordered:
            return cls()
        count = len(ordered)
        mean = math.fsum(ordered) / count
        variance = math.fsum((value - mean) ** 2 for value in ordered) / count
        # In integers: 0.95 * 20 is a little more than 19, and its ceiling would be 20.
        p95 = ordered[(95 * count + 99) // 100 - 1]
        return cls(ordered[0], mean, p95, ordered[-1], math.sqrt(variance))


@frozen
class Utilisation:
    """The requested part of a resource on the nodes that have it.

    `requested` and `allocatable` are totals in the resource's unit (CPU: millicores, memory and storage: bytes,
    else counts); `per_node` is the distribution of each node's requested share, 1.0 being full.
    """

    resource: str
    nodes: int
    requested: int
    allocatable: int
    per_node: Spread

    @property
    def share(self) -> float:
        """Total requested divided by total allocatable."""
        return self.requested / self.allocatable


@frozen
class Reason:
    """A reason why pods didn't fit: the number of pods with it, and the sum of the nodes that it ruled out.

    `nodes` is 0 for a reason that isn't about single nodes.
    """

    text: str
    pods: int
    nodes: int


@frozen
class Peak:
    """The most of a resource that was requested at a time, and the allocatable total; units as in `Utilisation`."""

    resource: str
    requested: int
    allocatable: int

    @property
    def share(self) -> float:
        """Requested divided by allocatable."""
        return self.requested / self.allocatable


@frozen
class Replay:
    """Figures of a replay, in which pods arrive and leave. Times are in virtual seconds.

    `makespan` is the time from the first arrival until the last pod was bound or left. `waiting` is the distribution
    of the times from arrival to binding, over the pods that were bound. `departed` is the number of pods that left
    at the end of their stay.
    """

    makespan: float
    waiting: Spread
    departed: int
    peaks: Sequence[Peak]

    @classmethod
    def of(
        cls, makespan: float, departed: int, decisions: Iterable[Decision], peaks: Sequence[Peak]
    ) -> Replay:
        """Return the figures with the waiting times of these decisions."""
        waiting = (each.bound - each.arrived for each in decisions if each.bound is not None)
        return cls(makespan, Spread.of(waiting), departed, peaks)

    def to_json(self) -> dict[str, object]:
        return {
            "makespanSeconds": self.makespan,
            "waitingSeconds": attrs.asdict(self.waiting),
            "departed": self.departed,
            "peak": {
                peak.resource: {
                    "requested": peak.requested,
                    "allocatable": peak.allocatable,
                    "share": peak.share,
                }
                for peak in self.peaks
            },
        }


@frozen
class Report:
    """The result of a simulation.

    `pods` is the number of pods to schedule. It is the sum of `placed` (they stayed until the end of the simulation
    or of their stay), `preempted` (placed, and evicted for another pod), `deleted` (by a plugin's hook, or by somebody
    else who changes the cluster), `unschedulable`, `gated`, `failed` (a
    plugin failed, or binding was refused) and `left` (not tried before the interruption). `tried` is the number of
    pods with a scheduling cycle, and `attempts` the number of these cycles. `preemptions` is how often room was made
    for a pod, and `victims` the number of pods that were evicted for it, including pods that were bound from the
    start.

    `bound_before` is the number of pods that were on nodes from the start; `other_scheduler`, `terminal` and
    `terminating` are numbers of pods that were ignored. `elapsed` is in seconds of the simulation's clock, and 0
    without one. `replay` is None unless pods arrive and leave. `missing` are objects that pods referred to at the
    start and the cluster lacked. `start` is the start of virtual time, in seconds since the epoch. `refused` are
    pods that an API server would not create; none of the numbers counts them. `plugin_metrics` are the final values
    of plugins' own metrics. `plugin_seconds` are the times of the plugins whose hooks were called, the slowest first,
    if they were measured.
    """

    profile: str
    seed: int
    nodes: int
    pods: int
    placed: int
    preempted: int
    deleted: int
    unschedulable: int
    gated: int
    failed: int
    left: int
    bound_before: int
    other_scheduler: int
    terminal: int
    terminating: int
    tried: int
    attempts: int
    preemptions: int
    victims: int
    interrupted: bool
    elapsed: float
    decisions: Sequence[Decision]
    reasons: Sequence[Reason]
    utilisation: Sequence[Utilisation]
    pods_per_node: Spread
    notes: Sequence[str] = ()
    replay: Replay | None = None
    missing: Sequence[MissingObject] = ()
    start: float = 0.0
    refused: Sequence[RefusedPod] = ()
    plugin_metrics: Sequence[PluginSeries] = ()
    plugin_seconds: Mapping[str, float] = EMPTY

    def __repr__(self) -> str:
        others = ("preempted", "deleted", "unschedulable", "gated", "failed", "left")
        rest = "".join(f", {count:,} {name}" for name in others if (count := getattr(self, name)))
        return f"<Report: {self.placed:,} of {counted(self.pods, 'pod')} placed{rest}>"

    @property
    def decisions_per_second(self) -> float:
        """Scheduling cycles per second of `elapsed`; 0 if no time has passed, as without a clock."""
        return self.attempts / self.elapsed if self.elapsed > 0 else 0.0

    def to_json(self) -> dict[str, object]:
        """Return the report in types that `json.dumps` knows; the keys are part of kschedfw's interface."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "profile": self.profile,
            "seed": self.seed,
            "startTime": datetime.fromtimestamp(self.start, UTC).isoformat(),
            "interrupted": self.interrupted,
            "elapsedSeconds": self.elapsed,
            "decisionsPerSecond": self.decisions_per_second,
            "nodes": self.nodes,
            "pods": {
                "total": self.pods,
                "placed": self.placed,
                "preempted": self.preempted,
                "deleted": self.deleted,
                "unschedulable": self.unschedulable,
                "gated": self.gated,
                "failed": self.failed,
                "left": self.left,
                "boundBefore": self.bound_before,
                "otherScheduler": self.other_scheduler,
                "terminal": self.terminal,
                "terminating": self.terminating,
            },
            "attempts": self.attempts,
            "preemptions": self.preemptions,
            "victims": self.victims,
            "replay": None if self.replay is None else self.replay.to_json(),
            "reasons": [attrs.asdict(reason) for reason in self.reasons],
            "missing": [each.to_json() for each in self.missing],
            "refused": [each.to_json() for each in self.refused],
            "utilisation": {
                usage.resource: {
                    "nodes": usage.nodes,
                    "requested": usage.requested,
                    "allocatable": usage.allocatable,
                    "share": usage.share,
                    "perNode": attrs.asdict(usage.per_node),
                }
                for usage in self.utilisation
            },
            "podsPerNode": attrs.asdict(self.pods_per_node),
            "pluginSeconds": dict(self.plugin_seconds),
            "pluginMetrics": [each.to_json() for each in self.plugin_metrics],
            "notes": list(self.notes),
            "decisions": [decision.to_json() for decision in self.decisions],
        }


def utilisation(node_infos: Iterable[NodeInfo]) -> list[Utilisation]:
    """Return the utilisation of each resource that a node has.

    The order is CPU, memory, ephemeral storage, pods, then the others by name.
    """
    shares: dict[str, list[float]] = {}
    requested: Counter[str] = Counter()
    allocatable: Counter[str] = Counter()
    for info in node_infos:
        for resource in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS, *info.allocatable.scalar_resources):
            capacity = info.allocatable.get(resource)
            if capacity <= 0:
                continue
            amount = len(info.pods) if resource == PODS else info.requested.get(resource)
            shares.setdefault(resource, []).append(amount / capacity)
            requested[resource] += amount
            allocatable[resource] += capacity
    first = [resource for resource in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS) if resource in shares]
    return [
        Utilisation(name, len(shares[name]), requested[name], allocatable[name], Spread.of(shares[name]))
        for name in (*first, *sorted(shares.keys() - first))
    ]


def peaks(most: Mapping[str, int], usages: Iterable[Utilisation]) -> list[Peak]:
    """Return the peak of each resource that nodes have; `usages` have the allocatable amounts."""
    return [Peak(usage.resource, most.get(usage.resource, 0), usage.allocatable) for usage in usages]


def reasons(decisions: Iterable[Decision]) -> list[Reason]:
    """Return the reasons of all pods that didn't fit, the most frequent ones first."""
    pods: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for decision in decisions:
        if decision.outcome not in (Outcome.PLACED, Outcome.PREEMPTED):
            pods.update(decision.reasons.keys())
            nodes.update(decision.reasons)
    ordered = sorted(pods, key=lambda text: (-pods[text], -nodes[text], text))
    return [Reason(text, pods[text], nodes[text]) for text in ordered]
