"""Workloads that have no pods because nobody makes any: suspended ones, and DaemonSets for nodes that aren't there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from kschedfw import Node, Pod
from kschedfw.api import Finding, pod_alike
from kschedfw.cluster import Cluster, Workload
from kschedfw_advisor.reports import Reports
from kschedfw_advisor.typos import typos

_NO_NODE: Final = "no-eligible-node"

_CODES: Final = {
    "it is suspended": "suspended",
    "it is paused": "paused",
    "its spec.replicas is 0": "scaled-to-zero",
    "no node is eligible": _NO_NODE,
    "there is no node": "no-node",
}
"""The codes of the reasons for which a workload that was read gets no pods, where someone may wonder why."""


@attrs.frozen
class Idle:
    """A workload without pods, and why it has none: as the reading of manifests says it, and as a finding."""

    workload: Workload
    reason: str
    finding: Finding


def idle_workloads(reports: Reports, cluster: Cluster) -> Iterator[Idle]:
    """Yield the workloads that nobody makes pods for, in the order of the input."""
    for name, reason in reports.without_pods.items():
        code = _CODES.get(reason)
        if code == _NO_NODE:
            yield Idle(_named(name), reason, _without_node(name, reports, cluster))
        elif code is not None:
            yield Idle(_named(name), reason, Finding.of(code, "{reason}", workload=name, reason=reason))


def _named(text: str) -> Workload:
    """Return the workload of `KIND NAMESPACE/NAME`."""
    kind, _, key = text.partition(" ")
    namespace, _, name = key.rpartition("/")
    return Workload(kind, namespace, name)


def _without_node(name: str, reports: Reports, cluster: Cluster) -> Finding:
    """Return why no node is eligible for a DaemonSet: the labels that no node has, and what may be misspelt."""
    daemon_set = reports.daemon_set(name.partition(" ")[2])
    pod = None if daemon_set is None else pod_alike(daemon_set)
    missing = () if pod is None else _missing_labels(pod, cluster)
    corrections = () if pod is None else tuple(map(str, typos(pod, cluster)))
    text = "no node is eligible"
    if missing:
        text += ": none has {missing}"
    if corrections:
        text += "; {corrections}"
    return Finding.of(_NO_NODE, text, workload=name, missing=missing, corrections=corrections)


def _missing_labels(pod: Pod, cluster: Cluster) -> tuple[str, ...]:
    """Return the entries of the pod's nodeSelector that no node has."""
    nodes = cluster.list(Node)
    return tuple(
        f"{key}={value}"
        for key, value in pod.spec.node_selector.items()
        if not any(node.labels.get(key) == value for node in nodes)
    )
