"""Messages about objects that the input lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from kschedfw.cluster import MissingObject
from kschedfw.simulator import Report

MOST_NAMED = 3
"""How many objects of a kind, and pods of an object, are named; the others are counted."""

EXPORT = (
    "kubectl get -A -o json "
    "nodes,pods,namespaces,services,replicationcontrollers,replicasets,statefulsets,poddisruptionbudgets,"
    "priorityclasses,runtimeclasses,limitranges,resourcequotas,persistentvolumeclaims,persistentvolumes,"
    "storageclasses,csinodes,csidrivers,csistoragecapacities,volumeattachments,deviceclasses,"
    "resourceclaims,resourceclaimtemplates,resourceslices"
    " > cluster.json"
)
"""The command that exports all that scheduling reads; the pages have the same."""

NO_NODES = f"the input has no nodes; this exports what scheduling reads: {EXPORT}"


def missing_lines(missing: Sequence[MissingObject]) -> Iterator[str]:
    """Yield a line for each missing object, and how to get them; nothing if none is missing."""
    if not missing:
        return
    yield "Missing from the input, though pods refer to it:"
    for kind, group in groupby(missing, key=lambda each: each.kind):
        objects = list(group)
        for each in objects[:MOST_NAMED]:
            yield f"{kind} {each.name}: {_pods(each.pods)}"
        if rest := objects[MOST_NAMED:]:
            yield f"{kind}: {len(rest):,} more"
    yield f"kubectl get {_resources(missing)} -A -o yaml dumps it; without it, decisions may be others"


def lack_of_work(report: Report) -> str:
    """Return why there was nothing to schedule; empty if there were pods and nodes."""
    if not report.nodes:
        return NO_NODES
    if report.pods:
        return ""
    others = [
        (report.bound_before, "on a node already (--reschedule frees such pods)"),
        (report.other_scheduler, "for another scheduler"),
        (report.terminal, "finished"),
        (report.terminating, "being deleted"),
        (len(report.refused), "refused by admission"),
    ]
    told = ", ".join(f"{count:,} {what}" for count, what in others if count)
    return f"the input has no pods to schedule{f': {told}' if told else ''}"


def missing_of(missing: Iterable[MissingObject], pod: str) -> list[MissingObject]:
    """Return the missing objects that one pod refers to, by the pod's key."""
    return [MissingObject(each.kind, each.name, (pod,)) for each in missing if pod in each.pods]


def _pods(pods: Sequence[str]) -> str:
    rest = len(pods) - MOST_NAMED
    return ", ".join([*pods[:MOST_NAMED], *([f"{rest:,} more"] if rest > 0 else [])])


def _resources(missing: Iterable[MissingObject]) -> str:
    """Return the kinds as arguments of kubectl."""
    return ",".join(dict.fromkeys(_plural(each.kind) for each in missing))


def _plural(kind: str) -> str:
    name = kind.lower()
    return f"{name}es" if name.endswith("s") else f"{name}s"
