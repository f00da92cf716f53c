"""PodTopologySpread once more, as plain loops over nodes and pods: what the arrays must agree with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.plugins._node_terms import RequiredNodeAffinity
from kschedfw.plugins._tolerations import has_untolerated_taint
from kschedfw.plugins.pod_topology_spread.constraints import SpreadConstraint

HOST = "kubernetes.io/hostname"


def has_all_labels(node: Node, constraints: Iterable[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)


def is_included(node: Node, constraint: SpreadConstraint, pod: Pod) -> bool:
    if constraint.honors_affinity and not RequiredNodeAffinity.of(pod).allows(node):
        return False
    return not (constraint.honors_taints and has_untolerated_taint(node.spec.taints, pod.spec.tolerations))


def matching(constraint: SpreadConstraint, pod: Pod, others: Iterable[PodInfo]) -> int:
    """How many of the others are counted."""
    selector = constraint.siblings.selector
    return sum(
        other.pod.namespace == pod.namespace
        and not other.pod.is_terminating
        and not selector.everything
        and selector.matches(other.pod.labels)
        for other in others
    )


@attrs.define
class Hard:
    """The hard constraints of a pod, each with its counts by domain."""

    pod: Pod
    constraints: tuple[SpreadConstraint, ...]
    counts: list[dict[str, int]]

    @classmethod
    def of(cls, pod: Pod, constraints: tuple[SpreadConstraint, ...], nodes: Iterable[NodeInfo]) -> Hard:
        counts: list[dict[str, int]] = [{} for _ in constraints]
        for info in nodes:
            if not has_all_labels(info.node, constraints):
                continue
            for constraint, per_domain in zip(constraints, counts, strict=True):
                if is_included(info.node, constraint, pod):
                    domain = info.node.labels[constraint.topology_key]
                    per_domain[domain] = per_domain.get(domain, 0) + matching(constraint, pod, info.pods)
        return cls(pod, constraints, counts)

    def change(self, other: Pod, node: Node, by: int) -> None:
        """Neither pods on their way out nor empty selectors are an exception here."""
        for constraint, per_domain in zip(self.constraints, self.counts, strict=True):
            if (
                has_all_labels(node, self.constraints)
                and is_included(node, constraint, self.pod)
                and other.namespace == self.pod.namespace
                and constraint.siblings.selector.matches(other.labels)
            ):
                domain = node.labels[constraint.topology_key]
                per_domain[domain] = per_domain.get(domain, 0) + by

    def verdict(self, labels: Mapping[str, str]) -> str:
        for constraint, per_domain in zip(self.constraints, self.counts, strict=True):
            domain = labels.get(constraint.topology_key)
            if domain is None:
                return "no label"
            least = min(per_domain.values(), default=(1 << 31) - 1)
            if len(per_domain) < constraint.min_domains:
                least = 0
            if per_domain.get(domain, 0) + constraint.self_match - least > constraint.max_skew:
                return "skew"
        return "ok"


def scores(
    pod: Pod,
    constraints: tuple[SpreadConstraint, ...],
    feasible: Sequence[NodeInfo],
    all_nodes: Sequence[NodeInfo],
    *,
    require_all: bool,
) -> tuple[list[int], list[int]]:
    """Raw and normalised scores of the feasible nodes by the soft constraints of a pod."""
    ignored = [require_all and not has_all_labels(info.node, constraints) for info in feasible]
    scored = [info for info, is_ignored in zip(feasible, ignored, strict=True) if not is_ignored]
    raw = [0.0] * len(feasible)
    for constraint in constraints:
        key = constraint.topology_key
        counts = {info.node.labels.get(key, ""): 0 for info in scored}
        weight = math.log((len(scored) if key == HOST else len(counts)) + 2)
        for info in all_nodes:
            domain = info.node.labels.get(key, "")
            if require_all and not has_all_labels(info.node, constraints):
                continue
            if domain in counts and is_included(info.node, constraint, pod):
                counts[domain] += matching(constraint, pod, info.pods)
        for index, info in enumerate(feasible):
            if key in info.node.labels and not ignored[index]:
                domain = info.node.labels[key]
                count = matching(constraint, pod, info.pods) if key == HOST else counts[domain]
                raw[index] += count * weight + (constraint.max_skew - 1)
    rounded = [math.floor(score) + (score % 1 >= 0.5) for score in raw]
    counted = [score for score, is_ignored in zip(rounded, ignored, strict=True) if not is_ignored]
    best, worst = min(counted, default=0), max(counted, default=0)
    normalized = [
        0 if is_ignored else 100 if worst == 0 else 100 * (worst + best - score) // worst
        for score, is_ignored in zip(rounded, ignored, strict=True)
    ]
    return rounded, normalized
