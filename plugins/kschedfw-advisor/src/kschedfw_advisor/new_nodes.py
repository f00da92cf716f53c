"""New nodes as they appear in a real cluster: together with their pods of DaemonSets."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw import Node, ObjectMeta, Pod, Transaction
from kschedfw.api import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    OwnerReference,
    PodStatus,
    Requirement,
    Selector,
    TaintEffect,
)
from kschedfw.cluster import Cluster


def add_nodes(trial: Transaction, template: Node, count: int, daemons: Sequence[Pod]) -> tuple[Node, ...]:
    """Add nodes like the template, each with a sibling of every one of `daemons` that fits the node.

    A daemon fits if the node has the labels of its nodeSelector and it tolerates all taints. (The DaemonSet's own
    required node affinity is unknown: its controller replaced it by the name of a node.)
    """
    nodes = trial.add_nodes(template, count)
    # All nodes are alike, so one of them is asked.
    fitting = [pod for pod in daemons if nodes and _is_eligible(pod, nodes[0])]
    for node in nodes:
        trial.add(*(_on(pod, node) for pod in fitting))
    return nodes


def daemons_of(cluster: Cluster) -> tuple[Pod, ...]:
    """Return a pod of each DaemonSet that has one in the cluster. It looks at all pods: ask once, not for each node."""
    found: dict[tuple[str, OwnerReference], Pod] = {}
    for pod in cluster.list(Pod):
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "DaemonSet" and not pod.is_terminal:
            found.setdefault((pod.namespace, owner), pod)
    return tuple(found.values())


def _is_eligible(pod: Pod, node: Node) -> bool:
    return Selector.from_labels(pod.spec.node_selector).matches(node.labels) and all(
        # The DaemonSet controller looks only at NoSchedule and NoExecute, too.
        taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        or any(each.tolerates(taint) for each in pod.spec.tolerations)
        for taint in node.spec.taints
    )


def _on(pod: Pod, node: Node) -> Pod:
    """The pod's sibling on another node."""
    given = pod.metadata
    owner = given.controller
    name = pod.name if owner is None else owner.name
    metadata = ObjectMeta(
        name=f"{name}-{node.name}",
        namespace=pod.namespace,
        labels=given.labels,
        annotations=given.annotations,
        owner_references=given.owner_references,
    )
    term = NodeSelectorTerm(match_fields=(Requirement("metadata.name", Operator.IN, (node.name,)),))
    affinity = attrs.evolve(pod.spec.affinity.node_affinity or NodeAffinity(), required=NodeSelector((term,)))
    spec = attrs.evolve(
        pod.spec, node_name=node.name, affinity=attrs.evolve(pod.spec.affinity, node_affinity=affinity)
    )
    return Pod(metadata, spec, PodStatus())
