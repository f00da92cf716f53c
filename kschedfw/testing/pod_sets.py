"""Expectations of sets of pods: how many have a node, on which nodes they are, and why the others have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from kschedfw.api import Node, Pod, RefusedPod
from kschedfw.api.selector_text import parse_selector
from kschedfw.api.words import counted
from kschedfw.cluster import Cluster, Workload
from kschedfw.cluster.workload_names import WorkloadName
from kschedfw.cluster.workloads import workload_above, workload_of
from kschedfw.simulator import Report
from kschedfw.testing.cases import SetExpectation

_MOST_NAMED = 5
"""The most pods that a problem names; a workload may have thousands."""


@attrs.frozen
class PodOutcome:
    """The outcome of a pod that was to be scheduled; `node` is empty for a pod without one."""

    key: str
    labels: Mapping[str, str]
    workload: Workload | None
    node: str
    message: str


def outcomes_of(
    report: Report, pods: Iterable[Pod], refused: Iterable[RefusedPod], cluster: Cluster
) -> list[PodOutcome]:
    """Return the outcomes of the pods that were pending, and of those that an API server wouldn't create.

    Args:
        report: the result of the simulation.
        pods: the pods before it.
        refused: the pods that admission refused.
        cluster: the cluster after it.
    """
    before = {pod.key: pod for pod in pods}
    scheduled = [
        PodOutcome(
            each.pod,
            before[each.pod].labels,
            workload_of(before[each.pod], cluster),
            each.place or "",
            each.message or f"it was {each.outcome}",
        )
        for each in report.decisions
    ]
    return scheduled + [
        PodOutcome(
            each.pod,
            each.labels,
            workload_above(each.controller, each.pod.partition("/")[0], each.labels, cluster),
            "",
            each.message,
        )
        for each in refused
    ]


def wrong_sets(
    expected: Iterable[SetExpectation], outcomes: Iterable[PodOutcome], cluster: Cluster
) -> Iterator[str]:
    """Yield what isn't as expected of each set."""
    every = list(outcomes)
    for each in expected:
        if found := [outcome for outcome in every if _is_in(outcome, each)]:
            yield from _wrong(each, found, cluster)
        else:
            yield f"there are no pending {_title(each)}{_workloads_of(every) if each.workload else ''}"


def _is_in(outcome: PodOutcome, expected: SetExpectation) -> bool:
    if expected.pods and not parse_selector(expected.pods).matches(outcome.labels):
        return False
    name = WorkloadName.parse(expected.workload) if expected.workload else None
    return name is None or name.means(outcome.workload)


def _wrong(expected: SetExpectation, found: list[PodOutcome], cluster: Cluster) -> Iterator[str]:
    title = _title(expected)
    placed = [outcome for outcome in found if outcome.node]
    waiting = [outcome for outcome in found if not outcome.node]
    wanted = expected.placed
    if wanted is None:
        wanted = 0 if expected.refused else len(found)
    if len(placed) != wanted:
        why = "" if len(placed) > wanted else f"; without a node: {_named(waiting)}"
        there = f"{len(placed):,} of {counted(len(found), 'pod')}"
        yield f"of the {title} {wanted:,} should have a node, and {there} have one{why}"
    if expected.within:
        selector = parse_selector(expected.within)
        nodes = {node.name for node in cluster.list(Node) if selector.matches(node.labels)}
        if outside := [outcome for outcome in placed if outcome.node not in nodes]:
            told = _first([f"{each.key} on {each.node}" for each in outside])
            yield f"{title} should be on nodes with {expected.within}, and aren't: {told}"
    if other := [outcome for outcome in waiting if expected.refused not in outcome.message]:
        yield f"{title} without a node should be refused with {expected.refused!r}, and aren't: {_named(other)}"


def _title(expected: SetExpectation) -> str:
    labels = f" with {expected.pods}" if expected.pods else ""
    of = f" of {expected.workload}" if expected.workload else ""
    return f"pods{labels}{of}"


def _workloads_of(outcomes: list[PodOutcome]) -> str:
    """Return a hint with the workloads of pending pods, as a suite names them; a name may be misspelt there."""
    workloads = {each.workload for each in outcomes if each.workload is not None}
    names = sorted(f"{each.kind}/{each.namespace}/{each.name}" for each in workloads)
    return f"; workloads with pending pods are {_first(names)}" if names else "; no workload has pending pods"


def _named(outcomes: list[PodOutcome]) -> str:
    return _first([f"{each.key} ({each.message})" for each in outcomes])


def _first(texts: list[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
