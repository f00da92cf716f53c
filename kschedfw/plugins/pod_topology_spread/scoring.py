"""Soft constraints: the emptier its domains, the better a node."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.results import MAX_NODE_SCORE, IntArray
from kschedfw.plugins.pod_topology_spread.args import HOSTNAME_LABEL
from kschedfw.plugins.pod_topology_spread.constraints import Constraint
from kschedfw.plugins.pod_topology_spread.counting import NodeInclusion, PodCounter, has_topologies


@attrs.frozen
class SoftConstraint:
    """A constraint, its matching pods per domain, and the weight that makes few and many domains comparable.

    `counts` stays empty for the hostname, whose domains are single nodes: `score` counts there.
    """

    constraint: Constraint
    counter: PodCounter
    counts: dict[str, int]
    weight: float

    @property
    def is_per_node(self) -> bool:
        return self.constraint.topology_key == HOSTNAME_LABEL


@attrs.frozen
class SoftSpread:
    """What pre_score writes."""

    constraints: tuple[SoftConstraint, ...]
    ignored: frozenset[str]
    """Feasible nodes that lack a topology label where all are required; they get the lowest score."""

    @classmethod
    def of(
        cls,
        pod: Pod,
        constraints: tuple[Constraint, ...],
        feasible: Sequence[NodeInfo],
        all_nodes: Sequence[NodeInfo],
        *,
        require_all: bool,
    ) -> SoftSpread:
        """Count pods on all nodes, but only in domains that some feasible node lies in."""
        ignored = frozenset(
            info.name
            for info in feasible
            if require_all and not has_topologies(info.node.metadata.labels, constraints)
        )
        scored = [info for info in feasible if info.name not in ignored]
        soft = tuple(
            _soft(constraint, PodCounter(constraint.selector, pod.namespace), scored)
            for constraint in constraints
        )
        _count(NodeInclusion.of(pod), soft, all_nodes, require_all=require_all)
        return cls(soft, ignored)

    def score(self, info: NodeInfo) -> int:
        if info.name in self.ignored:
            return 0
        labels = info.node.metadata.labels
        score = 0.0
        for soft in self.constraints:
            constraint = soft.constraint
            domain = labels.get(constraint.topology_key)
            if domain is None:
                continue
            count = soft.counter.count(info.pods) if soft.is_per_node else soft.counts[domain]
            # A greater max skew adds more to all nodes alike, and so waters down how much they differ.
            score += count * soft.weight + (constraint.max_skew - 1)
        return _round(score)

    def normalize(self, nodes: Sequence[NodeInfo], scores: IntArray) -> IntArray:
        """Turn fewer-is-better into 0–100."""
        is_ignored = np.fromiter((info.name in self.ignored for info in nodes), np.bool_, count=len(nodes))
        counted = scores[~is_ignored]
        highest = int(counted.max(initial=0))
        if highest == 0:
            normalized = np.full_like(scores, MAX_NODE_SCORE)
        else:
            normalized = MAX_NODE_SCORE * (highest + counted.min() - scores) // highest
        normalized[is_ignored] = 0
        return normalized


def _soft(constraint: Constraint, counter: PodCounter, scored: Sequence[NodeInfo]) -> SoftConstraint:
    if constraint.topology_key == HOSTNAME_LABEL:
        return SoftConstraint(constraint, counter, {}, _weight(len(scored)))
    # Nodes without the label form a domain of their own here, although `score` passes over it.
    counts = {info.node.metadata.labels.get(constraint.topology_key, ""): 0 for info in scored}
    return SoftConstraint(constraint, counter, counts, _weight(len(counts)))


def _count(
    inclusion: NodeInclusion,
    soft_constraints: tuple[SoftConstraint, ...],
    all_nodes: Sequence[NodeInfo],
    *,
    require_all: bool,
) -> None:
    counted = [soft for soft in soft_constraints if not soft.is_per_node]
    if not counted:
        return
    constraints = [soft.constraint for soft in soft_constraints]
    for info in all_nodes:
        labels = info.node.metadata.labels
        if require_all and not has_topologies(labels, constraints):
            continue
        for soft in counted:
            domain = labels.get(soft.constraint.topology_key, "")
            if domain in soft.counts and inclusion.includes(info.node, soft.constraint):
                soft.counts[domain] += soft.counter.count(info.pods)


def _weight(domains: int) -> float:
    """Counts shrink as domains multiply; the logarithm makes up for it. The 2 keeps it above 1."""
    return math.log(domains + 2)


def _round(score: float) -> int:
    """Go's math.Round for what is never negative: halves go up, where Python's round takes the even neighbour."""
    whole = math.floor(score)
    return whole + (score - whole >= 0.5)
