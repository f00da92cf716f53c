"""Changes for the sake of spread constraints that count nodes on which the pod can't be, or that lack the label."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Node, Pod, Transaction
from kschedfw.api import NodeInclusionPolicy, UnsatisfiableAction
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change, Effort, with_spec
from kschedfw_advisor.edits import Edit, object_differences


@attrs.frozen
class HonorTaints(Change):
    """The pod with a spread that doesn't count nodes whose taints keep it off."""

    usual_effort = Effort.POD_RULE
    topology_key: str

    def __str__(self) -> str:
        return f"nodeTaintsPolicy: Honor for the spread over {self.topology_key}"

    @property
    def amount(self) -> float:
        # Between minDomains, which is for places that aren't there, and a greater skew between those that are.
        return 0.25

    def changed(self, pod: Pod) -> Pod:
        constraints = tuple(
            attrs.evolve(each, node_taints_policy=NodeInclusionPolicy.HONOR)
            if each.topology_key == self.topology_key
            else each
            for each in pod.spec.topology_spread_constraints
        )
        return with_spec(pod, attrs.evolve(pod.spec, topology_spread_constraints=constraints))


@attrs.frozen
class LabelDomains(Change):
    """Nodes with a label that none has, each with its own name as the value."""

    usual_effort = Effort.NODE_LABEL
    key: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        tried = f"tried on {', '.join(self.nodes)}, each with its own value"
        return f"label the nodes with {self.key}, which none has; {tried}"

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        for node in self._nodes(cluster):
            trial.update(self._labelled(node))

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        for node in self._nodes(cluster):
            yield from object_differences(node, self._labelled(node))

    def _nodes(self, cluster: Cluster) -> Iterator[Node]:
        for name in self.nodes:
            if (node := cluster.get(Node, name)) is not None:
                yield node

    def _labelled(self, node: Node) -> Node:
        labels = FrozenDict({**node.labels, self.key: node.name})
        return node.with_metadata(attrs.evolve(node.metadata, labels=labels))


@attrs.frozen
class FewerDomains(Change):
    """The pod with a smaller minDomains of its spread over a topology."""

    usual_effort = Effort.POD_RULE
    topology_key: str
    min_domains: int

    def __str__(self) -> str:
        return f"minDomains {self.min_domains} for the spread over {self.topology_key}"

    def changed(self, pod: Pod) -> Pod:
        constraints = tuple(
            attrs.evolve(each, min_domains=min(self.min_domains, each.min_domains))
            if each.topology_key == self.topology_key and each.min_domains is not None
            else each
            for each in pod.spec.topology_spread_constraints
        )
        return with_spec(pod, attrs.evolve(pod.spec, topology_spread_constraints=constraints))


@attrs.frozen
class Spread(Change):
    """The pod with a greater maxSkew over a topology; with None as `max_skew`, the spread is only preferred.

    `has_min_domains` says that the pod's constraint has minDomains, which a preferred spread can't have.
    """

    usual_effort = Effort.POD_RULE
    topology_key: str
    max_skew: int | None
    has_min_domains: bool = False

    def __str__(self) -> str:
        if self.max_skew is None:
            without = " and no minDomains" if self.has_min_domains else ""
            return f"whenUnsatisfiable: ScheduleAnyway{without} for the spread over {self.topology_key}"
        return f"maxSkew {self.max_skew} for the spread over {self.topology_key}"

    @property
    def amount(self) -> float:
        return 1.0 if self.max_skew is None else 1 - 1 / self.max_skew

    def changed(self, pod: Pod) -> Pod:
        constraints = tuple(
            each
            if each.topology_key != self.topology_key
            # The API allows minDomains only with DoNotSchedule.
            else attrs.evolve(each, when_unsatisfiable=UnsatisfiableAction.SCHEDULE_ANYWAY, min_domains=None)
            if self.max_skew is None
            else attrs.evolve(each, max_skew=max(self.max_skew, each.max_skew))
            for each in pod.spec.topology_spread_constraints
        )
        return with_spec(pod, attrs.evolve(pod.spec, topology_spread_constraints=constraints))
