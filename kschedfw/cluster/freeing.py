"""Unbinding of pods, so that they can be scheduled again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodStatus
from kschedfw.api.records import frozen
from kschedfw.cluster.memory import TOPOLOGY_LABELS, InMemoryCluster

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""Marks the API server's copy of a static pod, which a kubelet runs from a file of its own."""


@frozen
class Freed:
    """The result of `free_pods`: the former node of each freed pod, and the keys of pods that stay."""

    nodes: Mapping[str, str]
    kept: tuple[str, ...]


def free_pods(cluster: InMemoryCluster, wanted: Callable[[Pod], bool]) -> Freed:
    """Make the bound pods for which `wanted` is true pending, as if they had just been created.

    Daemon pods and mirror pods stay, since they belong to their nodes; so do pods that have ended or are being
    deleted.
    """
    nodes: dict[str, str] = {}
    kept: list[str] = []
    for pod in cluster.list(Pod):
        if not may_be_freed(pod) or not wanted(pod):
            continue
        if belongs_to_its_node(pod):
            kept.append(pod.key)
        else:
            nodes[pod.key] = pod.node_name
            cluster.update(freed(pod, cluster.get(Node, pod.node_name)))
    return Freed(nodes, tuple(kept))


def may_be_freed(pod: Pod) -> bool:
    """Tell whether the pod is on a node, and neither ended nor being deleted."""
    return bool(pod.node_name) and not pod.is_terminal and not pod.is_terminating


def belongs_to_its_node(pod: Pod) -> bool:
    """Tell whether the pod is a DaemonSet's or a mirror pod, and so can be on no other node."""
    owner = pod.metadata.controller
    # The controller of a static pod's mirror is its node.
    is_owned = owner is not None and owner.kind in ("DaemonSet", "Node")
    return is_owned or MIRROR_ANNOTATION in pod.annotations


def freed(pod: Pod, node: Node | None) -> Pod:
    """Return the pod without its node, and without the labels that it got from the node when it was bound."""
    labels = {
        key: value
        for key, value in pod.labels.items()
        if node is None or key not in TOPOLOGY_LABELS or node.labels.get(key) != value
    }
    metadata = attrs.evolve(pod.metadata, labels=FrozenDict(labels))
    return attrs.evolve(pod, metadata=metadata, spec=attrs.evolve(pod.spec, node_name=""), status=PodStatus())
