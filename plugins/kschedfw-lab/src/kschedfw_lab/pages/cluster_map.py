"""A cluster for the map: columns over its nodes and its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Node, Pod, Resource, node_allocatable
from kschedfw_lab.pages.columns import NONE, Coded, Column, column

_PREFIX: Final = "node.kubernetes.io/"
_UNREADY: Final = frozenset((f"{_PREFIX}not-ready", f"{_PREFIX}unreachable"))
_CORDON: Final = f"{_PREFIX}unschedulable"
_PRESSURES: Final = {
    "MemoryPressure": (f"{_PREFIX}memory-pressure", "memory pressure"),
    "DiskPressure": (f"{_PREFIX}disk-pressure", "disk pressure"),
    "PIDPressure": (f"{_PREFIX}pid-pressure", "PID pressure"),
    "NetworkUnavailable": (f"{_PREFIX}network-unavailable", "no network"),
}
"""The taint that the node controller adds, and the name on the page, by the condition that is bad if true."""
_OF_CONDITIONS: Final = _UNREADY | {_CORDON} | {taint for taint, _ in _PRESSURES.values()}

ABSENT = -2
"""The value in place of a pod's node while the pod doesn't exist."""


class NodeColumns(msgspec.Struct, frozen=True):
    """The nodes. `labels` has a column for each key; `taints` are written as kubectl writes them.

    `cordoned`, `unready` and `tainted` are rows of nodes. A node is tainted if it has a taint that the other
    columns don't show. `pressures` has the resources that a node is short of. Amounts are in the resource's
    unit: CPU in millicores, memory and storage in bytes, else counts.
    """

    names: list[str]
    labels: dict[str, Coded]
    taints: Coded
    cordoned: list[int]
    unready: list[int]
    pressures: Coded
    tainted: list[int]
    allocatable: dict[str, Column]


class PodColumns(msgspec.Struct, frozen=True):
    """The pods, by their keys. `nodes` has rows of nodes, NONE for a pending pod, ABSENT for one that isn't there."""

    names: list[str]
    nodes: Column
    priorities: Column
    requests: dict[str, Column]


class ClusterMap(msgspec.Struct, frozen=True):
    """The cluster at one moment. `resources` are those that nodes offer, the usual ones first."""

    resources: list[str]
    nodes: NodeColumns
    pods: PodColumns


def cluster_map(
    nodes: Sequence[Node], pods: Sequence[Pod], places: Mapping[str, str | None] | None = None
) -> ClusterMap:
    """Return the map of these nodes and pods.

    Args:
        places: the pods' present places, if they differ from their objects, by key: the name of a node, empty for a
            pending pod, None for an absent one.
    """
    names = [node.name for node in nodes]
    allocatable = [node_allocatable(node) for node in nodes]
    rows = {name: row for row, name in enumerate(names)}
    where = {pod.key: pod.node_name for pod in pods} | dict(places or {})
    resources = _resources(allocatable)
    label_keys = sorted({key for node in nodes for key in node.labels})
    return ClusterMap(
        resources,
        NodeColumns(
            names,
            {key: Coded.of([node.labels.get(key) for node in nodes]) for key in label_keys},
            Coded.of([_taints(node) for node in nodes]),
            [row for row, node in enumerate(nodes) if node.spec.unschedulable],
            [row for row, node in enumerate(nodes) if _is_unready(node)],
            Coded.of([", ".join(_pressures(node)) or None for node in nodes]),
            [row for row, node in enumerate(nodes) if not _OF_CONDITIONS.issuperset(_taint_keys(node))],
            {name: column(amounts.get(name) for amounts in allocatable) for name in resources},
        ),
        PodColumns(
            [pod.key for pod in pods],
            column(row_of(where[pod.key], rows) for pod in pods),
            column(pod.priority for pod in pods),
            _requests(pods, resources),
        ),
    )


def row_of(place: str | None, rows: Mapping[str, int]) -> int:
    """Return the row of the node; NONE for a pending pod or an unknown node, ABSENT for an absent pod."""
    return ABSENT if place is None else rows.get(place, NONE)


def _resources(allocatable: Iterable[Resource]) -> list[str]:
    offered = {PODS} | {name for each in allocatable for name, amount in each.items() if amount > 0}
    usual = [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS) if name in offered]
    return [*usual, *sorted(offered.difference(usual))]


def _requests(pods: Sequence[Pod], resources: Iterable[str]) -> dict[str, Column]:
    amounts = [pod.requests.amounts for pod in pods]
    asked = {name for each in amounts for name, amount in each.items() if amount}
    columns = {
        name: column(each.get(name) for each in amounts)
        for name in resources
        if name in asked and name != PODS
    }
    # Each pod takes one of a node's pods, which it doesn't request.
    return {**columns, PODS: 1}


def _is_unready(node: Node) -> bool:
    """Tell whether the node's Ready condition isn't true, or a taint marks it as unready.

    A node of a manifest has neither, and counts as ready: kube-scheduler only reads the taints.
    """
    told = [each.status for each in node.status.conditions if each.type == "Ready"]
    return any(status != "True" for status in told) or not _UNREADY.isdisjoint(_taint_keys(node))


def _pressures(node: Node) -> list[str]:
    true = {each.type for each in node.status.conditions if each.status == "True"}
    keys = _taint_keys(node)
    return [text for kind, (taint, text) in _PRESSURES.items() if kind in true or taint in keys]


def _taint_keys(node: Node) -> set[str]:
    return {taint.key for taint in node.spec.taints}


def _taints(node: Node) -> str | None:
    written = [
        f"{taint.key}{'=' * bool(taint.value)}{taint.value}:{taint.effect}" for taint in node.spec.taints
    ]
    return ", ".join(written) or None
