"""A change of a cluster, or of pending pods, that may get the pods a place; each says what it is in one line."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from enum import IntEnum
from typing import ClassVar

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Node, Pod, Quantity, Transaction
from kschedfw.api import (
    Named,
    OwnerReference,
    PodSpec,
    Requirement,
    Taint,
)
from kschedfw.cluster import Cluster
from kschedfw.explain import code_of_plugin
from kschedfw_advisor.edits import Edit, object_differences
from kschedfw_advisor.node_groups import NodeGroup


class Effort(IntEnum):
    """The effort of a change, from little to much: the order in which changes are offered."""

    NOTHING = -1
    """The change happens without anybody doing anything: pods that are ending will be gone."""
    TYPO = 0
    GATE = 1
    NODE_STATE = 2
    POD_RULE = 3
    NODE_LABEL = 4
    POD_REQUEST = 5
    NODE_SIZE = 6
    OTHER_POD = 7
    NEW_NODES = 8
    MET_RULE = 9
    """Nodes meet the pod's selector and node affinity, and yet it would go to others."""
    TOO_MUCH = 10
    """The request or node would change beyond recognition."""
    RESERVED = 11
    """The place is kept for other pods, or the pod's image may not run there."""


@attrs.frozen
class Change:
    """One change. It is made to the cluster of a transaction, to the pending pods, or to both.

    Its text is made from its attributes, which are its parameters for programs. Its code is the class's name in
    kebab-case; the page of codes has all of them, so renaming a class raises the schema's version.
    """

    usual_effort: ClassVar[Effort]
    preempts: ClassVar[bool] = False
    """Tells whether the pod gets its place by preempting others, which remedies else never do."""

    @classmethod
    def code(cls) -> str:
        """Return the code of changes of this kind."""
        return code_of_plugin(cls.__name__)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters of changes of this kind."""
        return tuple(camel_case(each.name) for each in attrs.fields(cls) if each.eq)

    def to_json(self) -> dict[str, object]:
        """Return code, parameters and text in types that `json.dumps` knows; amounts are in the resource's unit."""
        fields = [each.name for each in attrs.fields(type(self)) if each.eq]
        parameters = {camel_case(name): _as_parameter(getattr(self, name)) for name in fields}
        return {"code": self.code(), "parameters": parameters, "text": str(self)}

    @property
    def effort(self) -> Effort:
        """Return how much the change takes."""
        return self.usual_effort

    @property
    def amount(self) -> float:
        """Return the size of the change, for comparing changes of the same effort."""
        return 0.0

    @property
    def requirement(self) -> Hashable:
        """The requirement that the change takes away. Of changes with the same one, the smallest is offered."""
        return None

    @property
    def steps(self) -> int:
        """Return the number of steps by which the change can be made smaller."""
        return 0

    def smaller(self, steps: int) -> Change:
        """Return the change, smaller by 0 to `self.steps` steps."""
        assert steps == 0
        return self

    def make(self, trial: Transaction, cluster: Cluster) -> None:
        """Make the change in the transaction, if it is a change of the cluster."""
        for _, new in self.others_changed(cluster):
            trial.update(new)

    def changed(self, pod: Pod) -> Pod:
        """Return the pod with the change; the pod itself if the change isn't one of the pod."""
        return pod

    def others_changed(self, cluster: Cluster) -> Iterator[tuple[Named, Named]]:  # noqa: ARG002  # most need none
        """Yield the other objects that the change is made to, each with what becomes of it."""
        return iter(())

    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        """Return the edits of other objects than the pod and, for a NodeChange, the node."""
        for old, new in self.others_changed(cluster):
            yield from object_differences(old, new)


@attrs.frozen
class NodeChange(Change):
    """One change of a node."""

    node: str

    def altered(self, node: Node) -> Node:
        """The node with the change."""
        raise NotImplementedError

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        trial.update(self.altered(node_of(cluster, self.node)))


def camel_case(name: str) -> str:
    """Return the name of an attribute as JSON spells it."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _as_parameter(value: object) -> object:
    """Return an attribute of a change in types of JSON; of an object, its name."""
    match value:
        case Pod():
            return {"pod": value.key, "node": value.node_name}
        case NodeGroup() | OwnerReference():
            return value.name
        case Taint():
            return {"key": value.key, "value": value.value, "effect": value.effect.value}
        case Requirement():
            return {"key": value.key, "operator": value.operator.value, "values": list(value.values)}
        case Quantity():
            return str(value)
        case FrozenDict():
            return dict(value)
        case tuple():
            return [_as_parameter(each) for each in value]
    return value


def edits_of(changes: Iterable[Change], pod: Pod, cluster: Cluster) -> Iterator[Edit]:
    """Return the edits of manifests that all changes together amount to."""
    changed = pod
    nodes: dict[str, Node] = {}
    for change in changes:
        changed = change.changed(changed)
        if isinstance(change, NodeChange):
            # Several changes of one node add up.
            nodes[change.node] = change.altered(nodes.get(change.node) or node_of(cluster, change.node))
    if changed != pod:
        yield from object_differences(pod, changed)
    for name, node in nodes.items():
        yield from object_differences(node_of(cluster, name), node)
    for change in changes:
        yield from change.other_edits(cluster)


def with_spec(pod: Pod, spec: PodSpec) -> Pod:
    """The pod with another spec."""
    return attrs.evolve(pod, spec=spec)


def taint_text(taint: Taint) -> str:
    """The taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def node_of(cluster: Cluster, name: str) -> Node:
    node = cluster.get(Node, name)
    assert node is not None
    return node
