"""The nodes that count towards a constraint, and their domains: everything that depends on node objects alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kschedfw import IntArray, Node, NodeTable, Pod, Snapshot
from kschedfw.api import BoundedDict
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.arrays import Mask
from kschedfw.framework.nodes.encoded_column import NO_VALUE, EncodedColumn
from kschedfw.plugins._node_terms import RequiredNodeAffinity
from kschedfw.plugins._tolerations import has_untolerated_taint, untolerated_mask
from kschedfw.plugins.pod_topology_spread.constraints import SiblingQuery, SpreadConstraint

Positions = npt.NDArray[np.intp]

_MOST_KEPT = 64


@frozen(eq=False)
class NodeInclusion:
    """The nodes that count towards a constraint of a pod, by its node affinity and node taints policies.

    `compares` is the value of the gate TaintTolerationComparisonOperators.
    """

    pod: Pod
    compares: bool = False

    @cached_property
    def affinity(self) -> RequiredNodeAffinity:
        return RequiredNodeAffinity.of(self.pod)

    def includes(self, node: Node, constraint: SpreadConstraint) -> bool:
        if constraint.honors_affinity and not self.affinity.allows(node):
            return False
        return not constraint.honors_taints or not has_untolerated_taint(
            node.spec.taints, self.pod.spec.tolerations, compares=self.compares
        )

    def mask(self, nodes: NodeTable, constraint: SpreadConstraint) -> Mask:
        """Return `includes` for all nodes."""
        rows = nodes.all_rows
        included = np.ones(len(nodes), dtype=np.bool_)
        if constraint.honors_affinity:
            included &= self.affinity.mask(nodes, rows)
        if constraint.honors_taints:
            included &= ~untolerated_mask(nodes, rows, self.pod.spec.tolerations, compares=self.compares)
        return included

    def signature(self, constraint: SpreadConstraint) -> Hashable:
        """Return the part of the pod that the answers depend on."""
        spec = self.pod.spec
        node_affinity = spec.affinity.node_affinity if constraint.honors_affinity else None
        return (
            spec.node_selector if constraint.honors_affinity else None,
            None if node_affinity is None else node_affinity.required,
            spec.tolerations if constraint.honors_taints else None,
        )


@frozen(eq=False)
class Extent:
    """The domains of a topology, by their codes in the label's column, and the nodes that count towards each.

    A node counts if the constraint's policies include it and it has all required labels.
    """

    key: str
    column: EncodedColumn[str | None]
    places: Positions
    """The domain of each node, -1 where it lacks the label."""
    unlabelled: Mask | None
    """The nodes that lack the label, None if no node does."""
    complete: Mask | None
    """The nodes that have all labels that are required, None if all nodes do."""
    occupied: Mask
    """The domains to which at least one counted node belongs; `domains` is their number."""
    domains: int
    _lie_in: Positions
    """`places` + 1, with nodes without the label in the domain of the empty label if there is one."""
    _bins: Positions | None
    """Like `_lie_in`, but 0 for nodes that don't count; None if exactly the nodes with the label count."""
    nodes: NodeTable

    @classmethod
    def of(cls, nodes: NodeTable, key: str, required: Sequence[str], included: Mask) -> Extent:
        """Return the extent of a topology key, given the included nodes and the required labels."""
        column = nodes.label(key)
        places = column.codes.astype(np.intp)
        complete = np.ones(len(nodes), dtype=np.bool_)
        for other in required:
            complete &= nodes.label(other).codes != NO_VALUE
        # Where the label isn't required, nodes without it count as nodes whose label is empty.
        unlabelled = places == NO_VALUE
        lie_in = np.where(unlabelled, column.code_of(""), places)
        bins = np.where(included & complete, lie_in, NO_VALUE)
        # One entry more, in the last place, for the nodes that don't count: their bin is -1.
        occupied = np.zeros(column.size + 1, dtype=np.bool_)
        occupied[bins] = True
        occupied = occupied[:NO_VALUE]
        return cls(
            key=key,
            column=column,
            places=places,
            unlabelled=unlabelled if unlabelled.any() else None,
            complete=None if complete.all() else complete,
            occupied=occupied,
            domains=int(np.count_nonzero(occupied)),
            bins=None if np.array_equal(bins, places) else bins + 1,
            lie_in=lie_in + 1,
            nodes=nodes,
        )

    def count(self, siblings: SiblingQuery, snapshot: Snapshot) -> IntArray:
        """Return the pods per domain on nodes that count, by code. Not to be changed."""
        if siblings.matches_nothing:
            return np.zeros(len(self.occupied), dtype=np.int64)
        counter = snapshot.topology.counter(siblings)
        if self._bins is None:
            return counter.by_domain(self.key)
        # The rows of nodes with siblings, usually few.
        rows = np.flatnonzero(counter.per_node)
        counts = np.bincount(self._bins.take(rows), counter.per_node.take(rows), len(self.occupied) + 1)
        # Weights make sums in float64, which are exact for numbers of pods.
        return counts[1:].astype(np.int64)

    def count_per_node(self, siblings: SiblingQuery, snapshot: Snapshot) -> IntArray:
        """Return the pods on each node, whether it counts or not. Not to be changed."""
        if siblings.matches_nothing:
            return np.zeros(len(self.places), dtype=np.int64)
        return snapshot.topology.counter(siblings).per_node

    def places_of(self, rows: IntArray) -> Positions:
        """Return `places` in these rows, shape (k,). Not to be changed."""
        return self.nodes.take(self.places, rows)

    def domains_of(self, rows: IntArray) -> int:
        """Return the number of domains of these nodes, whether they count or not; nodes without the label form one."""
        if self.nodes.is_all(rows):
            return self._domains_of_all
        return int(np.count_nonzero(np.bincount(self.nodes.take(self._lie_in, rows))))

    @cached_property
    def _domains_of_all(self) -> int:
        return int(np.count_nonzero(np.bincount(self._lie_in)))


class Extents:
    """The extents of recent pods' constraints, kept until a node changes."""

    def __init__(self, *, compares: bool = False) -> None:
        self.compares = compares
        self._known: BoundedDict[Hashable, Extent] = BoundedDict(_MOST_KEPT)
        self._nodes: NodeTable | None = None
        self._state = (-1, -1)

    def of(
        self,
        nodes: NodeTable,
        inclusion: NodeInclusion,
        constraint: SpreadConstraint,
        required: tuple[str, ...],
    ) -> Extent:
        """Return the extent of one constraint of a pod; only nodes with all required labels count."""
        # Rows move with the layout, labels and taints change with a node object; pods don't matter.
        state = (nodes.layout, nodes.node_changes.version)
        if nodes is not self._nodes or state != self._state:
            self._known.clear()
            self._nodes, self._state = nodes, state
        question = (constraint.topology_key, required, inclusion.signature(constraint))
        known = self._known.get(question)
        if known is None:
            included = inclusion.mask(nodes, constraint)
            known = self._known[question] = Extent.of(nodes, constraint.topology_key, required, included)
        return known
