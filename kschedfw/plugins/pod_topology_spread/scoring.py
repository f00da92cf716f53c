"""Scores by soft constraints: the fewer matching pods in a node's domains, the better."""

from __future__ import annotations

import math

import numpy as np

from kschedfw import MAX_NODE_SCORE, ByDomain, DomainScores, IntArray, Normalizing, Pod, Snapshot
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.arrays import FloatArray, Mask
from kschedfw.plugins.pod_topology_spread.args import HOSTNAME_LABEL
from kschedfw.plugins.pod_topology_spread.constraints import SpreadConstraint
from kschedfw.plugins.pod_topology_spread.extents import Extent, Extents, NodeInclusion


@frozen(eq=False)
class Penalties:
    """The penalty of one constraint by domain, the last for nodes without domain; by row for the hostname key."""

    extent: Extent
    amounts: FloatArray
    per_node: bool

    @classmethod
    def of(
        cls, constraint: SpreadConstraint, extent: Extent, snapshot: Snapshot, scored: IntArray
    ) -> Penalties:
        """Return the penalties from pods on all nodes, weighted by the number of domains of the scored nodes.

        The hostname's domains are single nodes, and each is counted by itself, included or not.
        """
        per_node = constraint.topology_key == HOSTNAME_LABEL
        if per_node:
            counts = extent.count_per_node(constraint.siblings, snapshot)
            weight = _weight(len(scored))
        else:
            counts = extent.count(constraint.siblings, snapshot)
            weight = _weight(extent.domains_of(scored))
        amounts = np.zeros(len(counts) + (not per_node))
        used = amounts[: len(counts)]
        np.multiply(counts, weight, out=used)
        # A greater max skew adds more to all nodes alike, so that their relative differences shrink.
        used += constraint.max_skew - 1
        # The constraint adds nothing for a node without the label, as the last entry does for other keys.
        if per_node and extent.unlabelled is not None:
            used[extent.unlabelled] = 0.0
        return cls(extent, amounts, per_node)

    def on(self, rows: IntArray) -> FloatArray:
        """Return the penalties in these rows, shape (k,). Read-only."""
        if self.per_node:
            return self.extent.nodes.take(self.amounts, rows)
        return self.amounts.take(self.extent.places_of(rows))


@frozen(eq=False)
class SoftSpread:
    """State written by pre_score: the penalties, and the nodes with all labels.

    `complete` is a mask of the nodes that have all labels; None if all nodes do or not all labels are required.
    Other nodes are ignored, and get the lowest score.
    """

    penalties: tuple[Penalties, ...]
    complete: Mask | None

    @classmethod
    def of(
        cls,
        pod: Pod,
        constraints: tuple[SpreadConstraint, ...],
        feasible: IntArray,
        snapshot: Snapshot,
        extents: Extents,
        *,
        require_all: bool,
    ) -> SoftSpread:
        inclusion = NodeInclusion(pod, extents.compares)
        required = tuple(constraint.topology_key for constraint in constraints) if require_all else ()
        table = snapshot.table
        per_constraint = [extents.of(table, inclusion, constraint, required) for constraint in constraints]
        complete = per_constraint[0].complete
        scored = feasible if complete is None else feasible[complete[feasible]]
        penalties = tuple(
            Penalties.of(constraint, extent, snapshot, scored)
            for constraint, extent in zip(constraints, per_constraint, strict=True)
        )
        return cls(penalties, complete)

    def by_domain(self) -> DomainScores | None:
        """Return the scores of all nodes by domain; None where they aren't sums by domain, each a whole number."""
        first, *others = self.penalties
        if others or first.per_node or self.complete is not None:
            return None
        part = ByDomain(first.extent.column, _rounded(first.amounts))
        return DomainScores((part,), Normalizing.REVERSED)

    def scores(self, rows: IntArray) -> IntArray:
        """Return the scores of the nodes in these rows, shape (k,), the fewer the better; 0 for ignored nodes."""
        first, *others = self.penalties
        if others or first.per_node:
            sums = first.on(rows)
            for penalties in others:
                sums = sums + penalties.on(rows)
            scores = _rounded(sums)
        else:
            scores = _rounded(first.amounts).take(first.extent.places_of(rows))
        if self.complete is not None:
            scores[~self.complete[rows]] = 0
        return scores

    def normalize(self, rows: IntArray, scores: IntArray) -> IntArray:
        """Turn penalties (fewer is better) into 0–100."""
        complete = None if self.complete is None else self.complete[rows]
        counted = scores if complete is None else scores[complete]
        highest = max(int(counted[counted.argmax()]), 0) if len(counted) else 0
        if highest == 0:
            normalized = np.full_like(scores, MAX_NODE_SCORE)
        else:
            normalized = highest + counted[counted.argmin()] - scores
            normalized *= MAX_NODE_SCORE
            # Of numbers that aren't negative, so it rounds as Go's division does.
            normalized //= highest
        if complete is not None:
            normalized[~complete] = 0
        return normalized


def _weight(domains: int) -> float:
    """Return the weight of counts for this many domains, since counts shrink as domains multiply.

    The 2 keeps it above 0.
    """
    return math.log(domains + 2)


def _rounded(scores: FloatArray) -> IntArray:
    """Return Go's math.Round of each, which rounds halves up, where Python's round takes the even neighbour.

    Adding a half is inexact only below a half, and there is no score but 0 there, since no weight is less than
    log 2.
    """
    return np.floor(scores + 0.5).astype(np.int64)
