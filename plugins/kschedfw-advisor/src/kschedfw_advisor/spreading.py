"""Changes for the sake of spread constraints that count nodes on which the pod can't be, or that lack the label."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Node, Pod
from kschedfw.api import Named, NodeInclusionPolicy, TopologySpreadConstraint, UnsatisfiableAction
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change, Effort, with_spec


@attrs.frozen
class _ConstraintChange(Change):
    """The pod with other spread constraints over a topology."""

    usual_effort = Effort.POD_RULE
    topology_key: str

    @abstractmethod
    def _altered(self, constraint: TopologySpreadConstraint) -> TopologySpreadConstraint: ...

    def changed(self, pod: Pod) -> Pod:
        constraints = tuple(
            self._altered(each) if each.topology_key == self.topology_key else each
            for each in pod.spec.topology_spread_constraints
        )
        return with_spec(pod, attrs.evolve(pod.spec, topology_spread_constraints=constraints))


@attrs.frozen
class HonorTaints(_ConstraintChange):
    """The pod with a spread that doesn't count nodes whose taints keep it off."""

    def __str__(self) -> str:
        return f"nodeTaintsPolicy: Honor for the spread over {self.topology_key}"

    @property
    def amount(self) -> float:
        # Between minDomains, which is for places that aren't there, and a greater skew between those that are.
        return 0.25

    @override
    def _altered(self, constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        return attrs.evolve(constraint, node_taints_policy=NodeInclusionPolicy.HONOR)


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
    def others_changed(self, cluster: Cluster) -> Iterator[tuple[Named, Named]]:
        for name in self.nodes:
            if (node := cluster.get(Node, name)) is not None:
                labels = FrozenDict({**node.labels, self.key: name})
                yield node, node.with_metadata(attrs.evolve(node.metadata, labels=labels))


@attrs.frozen
class FewerDomains(_ConstraintChange):
    """The pod with a smaller minDomains of its spread over a topology."""

    min_domains: int

    def __str__(self) -> str:
        return f"minDomains {self.min_domains} for the spread over {self.topology_key}"

    @override
    def _altered(self, constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        given = constraint.min_domains
        least = None if given is None else min(self.min_domains, given)
        return attrs.evolve(constraint, min_domains=least)


@attrs.frozen
class Spread(_ConstraintChange):
    """The pod with a greater maxSkew over a topology; with None as `max_skew`, the spread is only preferred.

    `has_min_domains` says that the pod's constraint has minDomains, which a preferred spread can't have.
    """

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

    @override
    def _altered(self, constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        if self.max_skew is not None:
            return attrs.evolve(constraint, max_skew=max(self.max_skew, constraint.max_skew))
        # The API allows minDomains only with DoNotSchedule.
        anyway = UnsatisfiableAction.SCHEDULE_ANYWAY
        return attrs.evolve(constraint, when_unsatisfiable=anyway, min_domains=None)
