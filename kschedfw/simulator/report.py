"""What a simulation comes to: counts, reasons, utilisation, spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

import attrs

from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kschedfw.simulator.decision import Decision, Outcome


@attrs.frozen
class Spread:
    """How a quantity is distributed over nodes.

    `p95` is by nearest rank (the smallest value that at least 95 % of the nodes don't exceed); `stddev` is the
    population's. All are 0 where there are no nodes.
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


@attrs.frozen
class Utilisation:
    """How much of a resource is requested on the nodes that have it.

    `requested` and `allocatable` are totals in the resource's unit (CPU: millicores, memory and storage: bytes, else
    counts); `per_node` is over each node's requested share, 1.0 being full.
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


@attrs.frozen
class Reason:
    """Why pods didn't fit: for how many pods this was among the reasons, and the nodes it ruled out, summed up.

    `nodes` is 0 for a reason that isn't about single nodes.
    """

    text: str
    pods: int
    nodes: int


class SpreadJson(TypedDict):
    min: float
    mean: float
    p95: float
    max: float
    stddev: float


@attrs.frozen
class Report:
    """The result of a simulation.

    `pods` is how many there were to schedule: `placed`, `unschedulable`, `gated`, `failed` (a plugin broke, or binding
    was refused) and `left` (not tried before the interruption). `bound_before` pods were on nodes from the start;
    `other_scheduler`, `terminal` and `terminating` pods were passed over. `elapsed` is in seconds of the clock
    that was given to the simulation.
    """

    profile: str
    seed: int
    nodes: int
    pods: int
    placed: int
    unschedulable: int
    gated: int
    failed: int
    left: int
    bound_before: int
    other_scheduler: int
    terminal: int
    terminating: int
    interrupted: bool
    elapsed: float
    decisions: Sequence[Decision]
    reasons: Sequence[Reason]
    utilisation: Sequence[Utilisation]
    pods_per_node: Spread
    notes: Sequence[str] = ()

    @property
    def attempts(self) -> int:
        """How many pods went through a scheduling cycle."""
        return self.placed + self.unschedulable + self.failed

    @property
    def decisions_per_second(self) -> float:
        """Scheduling cycles per second; 0 where no time has passed."""
        return self.attempts / self.elapsed if self.elapsed > 0 else 0.0

    def to_json(self) -> dict[str, object]:
        """The report in types that `json.dumps` knows; the keys are part of kschedfw's interface."""
        return {
            "profile": self.profile,
            "seed": self.seed,
            "interrupted": self.interrupted,
            "elapsedSeconds": self.elapsed,
            "decisionsPerSecond": self.decisions_per_second,
            "nodes": self.nodes,
            "pods": {
                "total": self.pods,
                "placed": self.placed,
                "unschedulable": self.unschedulable,
                "gated": self.gated,
                "failed": self.failed,
                "left": self.left,
                "boundBefore": self.bound_before,
                "otherScheduler": self.other_scheduler,
                "terminal": self.terminal,
                "terminating": self.terminating,
            },
            "reasons": [attrs.asdict(reason) for reason in self.reasons],
            "utilisation": {
                usage.resource: {
                    "nodes": usage.nodes,
                    "requested": usage.requested,
                    "allocatable": usage.allocatable,
                    "share": usage.share,
                    "perNode": _spread_json(usage.per_node),
                }
                for usage in self.utilisation
            },
            "podsPerNode": _spread_json(self.pods_per_node),
            "notes": list(self.notes),
            "decisions": [decision.to_json() for decision in self.decisions],
        }


def _spread_json(spread: Spread) -> SpreadJson:
    return {
        "min": spread.min,
        "mean": spread.mean,
        "p95": spread.p95,
        "max": spread.max,
        "stddev": spread.stddev,
    }


def utilisation(node_infos: Iterable[NodeInfo]) -> list[Utilisation]:
    """Per resource that any node has: CPU, memory, ephemeral storage, pods, then the others by name."""
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


def reasons(decisions: Iterable[Decision]) -> list[Reason]:
    """The reasons of all pods that didn't fit, the most frequent ones first."""
    pods: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for decision in decisions:
        if decision.outcome is not Outcome.PLACED:
            pods.update(decision.reasons.keys())
            nodes.update(decision.reasons)
    ordered = sorted(pods, key=lambda text: (-pods[text], -nodes[text], text))
    return [Reason(text, pods[text], nodes[text]) for text in ordered]
