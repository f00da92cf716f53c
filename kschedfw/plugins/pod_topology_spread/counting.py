"""Which nodes and which pods count towards a constraint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, Toleration
from kschedfw.api.selectors import Selector
from kschedfw.framework.pod_info import PodInfo
from kschedfw.plugins._node_terms import RequiredNodeAffinity
from kschedfw.plugins._tolerations import has_untolerated_taint
from kschedfw.plugins.pod_topology_spread.constraints import Constraint


class PodCounter:
    """Counts the pods of a namespace that a selector selects; those on their way out don't count.

    An empty selector, although it matches every pod, counts none: so does kube-scheduler. Answers are kept by
    labels, since a cluster has many pods but few different sets of labels.
    """

    __slots__ = ("_namespace", "_selected", "_selector")

    def __init__(self, selector: Selector, namespace: str) -> None:
        self._selector = selector
        self._namespace = namespace
        self._selected: dict[FrozenDict[str, str], bool] = {}

    def count(self, pods: Iterable[PodInfo]) -> int:
        if self._selector.everything:
            return 0
        namespace, selected = self._namespace, self._selected
        count = 0
        for info in pods:
            meta = info.pod.metadata
            if meta.namespace != namespace or meta.deletion_timestamp is not None:
                continue
            answer = selected.get(meta.labels)
            if answer is None:
                answer = selected[meta.labels] = self._selector.matches(meta.labels)
            count += answer
        return count


def has_topologies(labels: Mapping[str, str], constraints: Iterable[Constraint]) -> bool:
    """Whether a node with these labels lies in some domain of every constraint."""
    return all(constraint.topology_key in labels for constraint in constraints)


@attrs.frozen
class NodeInclusion:
    """Tells which nodes count towards a constraint of a pod (node affinity and node taints policies)."""

    affinity: RequiredNodeAffinity
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, pod: Pod) -> NodeInclusion:
        return cls(RequiredNodeAffinity.of(pod), pod.spec.tolerations)

    def includes(self, node: Node, constraint: Constraint) -> bool:
        if constraint.honors_affinity and not self.affinity.allows(node):
            return False
        return not (constraint.honors_taints and has_untolerated_taint(node.spec.taints, self.tolerations))
