"""The metrics of a comparison by name, for conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, Protocol, TypeVar

from kschedfw_lab.compare.comparison import ComparedRun, Comparison, FateChange
from kschedfw_lab.compare.metrics import Unit
from kschedfw_lab.compare.own_metrics import METRICS, PLUGIN, installed_metric

ComparisonT_contra = TypeVar("ComparisonT_contra", contravariant=True)


class Vocabulary(Protocol[ComparisonT_contra]):
    """The metrics that conditions may name, and their values in a comparison. Run 0 is the baseline.

    For `kschedfw compare`, this module itself implements the protocol.
    """

    @property
    def DIFFERENCES(self) -> Collection[str]:  # noqa: N802  # a module's constant
        """The metrics that exist only for runs other than the baseline."""
        ...

    def unit_of(self, name: str, /) -> Unit | None:
        """Return the unit of the metric of this name; None if there is none."""
        ...

    def similar_to(self, name: str, /) -> str | None:
        """Return the metric with the most similar name."""
        ...

    def names(self) -> str:
        """Return all metrics, for messages."""
        ...

    def value_of(self, name: str, comparison: ComparisonT_contra, index: int, /) -> Fraction:
        """Return a metric of the run with this index."""
        ...

    def pods_of(self, comparison: ComparisonT_contra, index: int, /) -> int:
        """Return the number of pods of the run. Percentages of counts refer to it."""
        ...


COUNTS: Final[Mapping[str, Callable[[ComparedRun], int]]] = {
    "pods": lambda run: run.report.pods,
    "placed": lambda run: run.report.placed,
    "unplaced": lambda run: run.report.pods - run.report.placed,
    "preempted": lambda run: run.report.preempted,
    "deleted": lambda run: run.report.deleted,
    "unschedulable": lambda run: run.report.unschedulable,
    "gated": lambda run: run.report.gated,
    "failed": lambda run: run.report.failed,
    "attempts": lambda run: run.report.attempts,
    "preemptions": lambda run: run.report.preemptions,
    "victims": lambda run: run.report.victims,
    "nodesInUse": lambda run: run.nodes_in_use,
    "nodesWithOwnPodsOnly": lambda run: run.nodes_with_own_pods_only,
}
"""Metrics that are counts. They count pods, unless the name says otherwise."""

DIFFERENCES: Final[Mapping[str, tuple[FateChange, ...]]] = {
    "moved": (FateChange.MOVED,),
    "gained": (FateChange.GAINED,),
    "lost": (FateChange.LOST,),
    "changed": tuple(FateChange),
}
"""Counts of pods whose outcome differs from that under the baseline."""

_SHARES: Final[Mapping[str, Callable[[ComparedRun], Mapping[str, float]]]] = {
    "utilisation": lambda run: {each.resource: each.share for each in run.report.utilisation},
    "imbalance": lambda run: {each.resource: each.per_node.stddev for each in run.report.utilisation},
    "fragmentation": lambda run: {each.resource: each.share for each in run.fragmentation},
}

WITHIN: Final = "imbalance.within"


def unit_of(name: str) -> Unit | None:
    """Return the unit of the metric of this name; None if there is none. Don't check whether the resource exists."""
    if name in COUNTS or name in DIFFERENCES:
        return Unit.COUNT
    if name.startswith(PLUGIN):
        return Unit.NUMBER
    if (own := installed_metric(name)) is not None:
        return own.unit
    family, dot, resource = name.partition(".")
    return Unit.SHARE if family in _SHARES and dot and resource else None


def resource_of(name: str) -> str | None:
    """Return the resource in a metric's name; None if there is none."""
    family, _, resource = name.partition(".")
    return resource if family in _SHARES and name != WITHIN else None


def value_of(name: str, comparison: Comparison, index: int) -> Fraction:
    """Return a metric of the run with this index; 0 for what a run doesn't have: a resource, a plugin's counter."""
    run = comparison.runs[index]
    if name in COUNTS:
        return Fraction(COUNTS[name](run))
    if name in DIFFERENCES:
        moves = comparison.moves[index - 1]
        return Fraction(sum(moves.count(change) for change in DIFFERENCES[name]))
    if name.startswith(PLUGIN) or name in METRICS.names():
        return Fraction(run.own.get(name, 0.0))
    if name == WITHIN:
        return Fraction(run.imbalance_within.mean)
    family, _, resource = name.partition(".")
    return Fraction(_SHARES[family](run).get(resource, 0.0))


def pods_of(comparison: Comparison, index: int) -> int:
    """Return the number of pods of the run with this index."""
    return comparison.runs[index].report.pods


def names() -> str:
    """Return the names of all metrics, for messages."""
    shares = [f"{family}.RESOURCE" for family in _SHARES]
    return ", ".join([*COUNTS, *DIFFERENCES, *shares, WITHIN, f"{PLUGIN}NAME", *METRICS.names()])


def similar_to(name: str) -> str | None:
    """Return the metric with the most similar name, such as `utilisation.cpu` for `utilization.cpu`."""
    family, dot, resource = name.partition(".")
    similar = get_close_matches(
        family, _SHARES if resource else [*COUNTS, *DIFFERENCES, *METRICS.names()], n=1
    )
    return f"{similar[0]}{dot}{resource}" if similar else None
