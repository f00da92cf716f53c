"""Changes of the cluster around a pod: the state and labels of nodes, other pods, and new nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Node, Pod, Transaction
from kschedfw.api import (
    Taint,
    counted,
    with_article,
)
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change, Effort, NodeChange, taint_text
from kschedfw_advisor.edits import Edit, written
from kschedfw_advisor.new_nodes import add_nodes
from kschedfw_advisor.node_groups import HOSTNAME, NodeGroup

_MOST_LABELS: Final = 100
"""More labels than a pod asks for."""

CORDONED: Final = "node.kubernetes.io/unschedulable"
"""The key of the taint that the node controller gives a cordoned node, and takes away with the cordon."""


@attrs.frozen
class Uncordon(NodeChange):
    """A node that takes pods again."""

    usual_effort = Effort.NODE_STATE

    def __str__(self) -> str:
        return f"uncordon node {self.node}"

    @override
    def altered(self, node: Node) -> Node:
        # Both, since NodeUnschedulable reads the field and TaintToleration the taint.
        taints = tuple(taint for taint in node.spec.taints if taint.key != CORDONED)
        return attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=False, taints=taints))


@attrs.frozen
class RemoveTaint(NodeChange):
    """A node without the taints of a condition, as when it has been repaired: one key may have several effects."""

    usual_effort = Effort.NODE_STATE
    taint: Taint

    def __str__(self) -> str:
        # Taken away by hand, the taint of a condition comes back.
        return f"repair node {self.node}, so that its taint {taint_text(self.taint)} goes"

    @override
    def altered(self, node: Node) -> Node:
        taints = tuple(each for each in node.spec.taints if each.key != self.taint.key)
        return attrs.evolve(node, spec=attrs.evolve(node.spec, taints=taints))


@attrs.frozen
class LabelNode(NodeChange):
    """A node with other labels; None as a value takes the label away."""

    usual_effort = Effort.NODE_LABEL
    labels: FrozenDict[str, str | None]
    is_met: bool = False
    """Tells whether nodes meet all the rules of the pod on nodes, without this label."""

    @property
    def effort(self) -> Effort:
        return Effort.MET_RULE if self.is_met else self.usual_effort

    def __str__(self) -> str:
        told = [f"{key}-" if value is None else f"{key}={value}" for key, value in self.labels.items()]
        return f"label node {self.node} {' '.join(told)}"

    @property
    def amount(self) -> float:
        # A node that is given to the pod is lost to others: dropping the rule comes first.
        return len(self.labels) + (_MOST_LABELS if self.is_met else 0)

    @override
    def altered(self, node: Node) -> Node:
        changed = {**node.labels, **self.labels}
        labels = FrozenDict({key: value for key, value in changed.items() if value is not None})
        return attrs.evolve(node, metadata=attrs.evolve(node.metadata, labels=labels))


@attrs.frozen
class DeletePod(Change):
    """A cluster without another pod."""

    usual_effort = Effort.OTHER_POD
    pod: Pod

    def __str__(self) -> str:
        return f"delete pod {self.pod.key} from node {self.pod.node_name}"

    @property
    def amount(self) -> float:
        return self.pod.priority

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        trial.delete(self.pod)

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        yield Edit(f"Pod {self.pod.key}", "", written(self.pod), None)


@attrs.frozen
class AddNodes(Change):
    """A cluster with more nodes of a group; `exists` says that the group is a kind of node that the cluster has."""

    usual_effort = Effort.NEW_NODES
    group: NodeGroup
    exists: bool
    count: int = 1
    apart: str = ""
    """The label with a different value on each new node, such as the zone's; empty for none."""
    daemons: tuple[Pod, ...] = attrs.field(default=(), eq=False, repr=False)
    """A pod of each DaemonSet, whose siblings come with the nodes (`daemons_of`)."""

    def __str__(self) -> str:
        text = f"{counted(self.count, 'more node')} {'like' if self.exists else 'of group'} {self.group.name}"
        if self.apart:
            text += f"{', each' if self.count > 1 else ''} with {with_article(self.apart)} of its own"
        return text

    @property
    def amount(self) -> float:
        return self.count + bool(self.apart)

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        self.add_to(trial)

    def add_to(self, trial: Transaction) -> tuple[Node, ...]:
        """Add the nodes, and return them."""
        nodes = add_nodes(trial, self.group.template, self.count, self.daemons)
        if self.apart:
            nodes = tuple(trial.update(self._apart(node)) for node in nodes)
        return nodes

    def _apart(self, node: Node) -> Node:
        labels = FrozenDict({**node.labels, self.apart: node.name})
        return node.with_metadata(attrs.evolve(node.metadata, labels=labels))

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        for number in range(1, self.count + 1):
            name = f"{self.group.template.name}-{number}"
            yield Edit(f"Node {name}", "", None, written(self._new_node(name)))

    def _new_node(self, name: str) -> Node:
        template = self.group.template
        labels = {**template.labels, HOSTNAME: name, **({self.apart: name} if self.apart else {})}
        metadata = attrs.evolve(template.metadata, name=name, labels=FrozenDict(labels))
        return template.with_metadata(metadata)
