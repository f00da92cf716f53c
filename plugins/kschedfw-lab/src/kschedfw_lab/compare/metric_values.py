"""The metrics of a comparison by name, for conditions on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from typing import Final

from kschedfw_lab.compare.comparison import Change, Comparison, Run


class Unit(Enum):
    """The unit of a metric."""

    COUNT = "a count"
    SHARE = "a share"


COUNTS: Final[Mapping[str, Callable[[Run], int]]] = {
    "pods": lambda run: run.report.pods,
    "placed": lambda run: run.report.placed,
    "unplaced": lambda run: run.report.pods - run.report.placed,
    "preempted": lambda run: run.report.preempted,
    "unschedulable": lambda run: run.report.unschedulable,
    "gated": lambda run: run.report.gated,
    "failed": lambda run: run.report.failed,
    "attempts": lambda run: run.report.attempts,
    "preemptions": lambda run: run.report.preemptions,
    "victims": lambda run: run.report.victims,
    "nodesInUse": lambda run: run.nodes_in_use,
}
"""Counts of a run; of pods, unless the name says otherwise."""

DIFFERENCES: Final[Mapping[str, tuple[Change, ...]]] = {
    "moved": (Change.MOVED,),
    "gained": (Change.GAINED,),
    "lost": (Change.LOST,),
    "changed": tuple(Change),
}
"""Counts of pods whose outcome differs from that under the baseline."""

_SHARES: Final[Mapping[str, Callable[[Run], Mapping[str, float]]]] = {
    "utilisation": lambda run: {each.resource: each.share for each in run.report.utilisation},
    "imbalance": lambda run: {each.resource: each.per_node.stddev for each in run.report.utilisation},
    "fragmentation": lambda run: {each.resource: each.share for each in run.fragmentation},
}

WITHIN: Final = "imbalance.within"


def unit_of(name: str) -> Unit | None:
    """The unit of the metric of this name; None if there is none. Doesn't check whether the resource exists."""
    if name in COUNTS or name in DIFFERENCES:
        return Unit.COUNT
    family, dot, resource = name.partition(".")
    return Unit.SHARE if family in _SHARES and dot and resource else None


def resource_of(name: str) -> str | None:
    """The resource in a metric's name; None if there is none."""
    return None if name in COUNTS or name in DIFFERENCES or name == WITHIN else name.partition(".")[2]


def value_of(name: str, comparison: Comparison, index: int) -> Fraction:
    """A metric of the run with this index; 0 for a resource that no node has or no pod requests."""
    run = comparison.runs[index]
    if name in COUNTS:
        return Fraction(COUNTS[name](run))
    if name in DIFFERENCES:
        moves = comparison.moves[index - 1]
        return Fraction(sum(moves.count(change) for change in DIFFERENCES[name]))
    if name == WITHIN:
        return Fraction(run.imbalance_within.mean)
    family, _, resource = name.partition(".")
    return Fraction(_SHARES[family](run).get(resource, 0.0))


def names() -> str:
    """All metrics, for messages."""
    return ", ".join([*COUNTS, *DIFFERENCES, *(f"{family}.RESOURCE" for family in _SHARES), WITHIN])


def similar_to(name: str) -> str | None:
    """The metric with the most similar name, such as `utilisation.cpu` for `utilization.cpu`."""
    family, dot, resource = name.partition(".")
    similar = get_close_matches(family, _SHARES if resource else [*COUNTS, *DIFFERENCES], n=1)
    return f"{similar[0]}{dot}{resource}" if similar else None
