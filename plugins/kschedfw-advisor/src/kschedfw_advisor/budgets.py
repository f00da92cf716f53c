"""What PodDisruptionBudgets allow while pods are evicted and replaced: the status that a controller would write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from kschedfw import Pod, Transaction
from kschedfw.api import (
    OwnerReference,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    as_selector,
)
from kschedfw.cluster import Cluster

_SCALED: Final[dict[str, type[ReplicaSet | ReplicationController | StatefulSet]]] = {
    "ReplicaSet": ReplicaSet,
    "ReplicationController": ReplicationController,
    "StatefulSet": StatefulSet,
}


@attrs.frozen
class _Budget:
    """A budget, and how many of its pods may be missing as long as none is."""

    budget: PodDisruptionBudget
    allowed: int

    def covers(self, pod: Pod) -> bool:
        selector = as_selector(self.budget.spec.selector)
        return pod.namespace == self.budget.namespace and selector.matches(pod.labels)


class Budgets:
    """The budgets of a cluster whose pods are evicted, and healthy again once they have another place.

    A budget with a status allows as many disruptions as that says. For one without, as in manifests that no controller
    has seen, they are computed as the disruption controller does (v1.36 `updatePdbStatus`), where every pod with a node
    is healthy.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._budgets = [
            _Budget(budget, _allowed(budget, cluster)) for budget in cluster.list(PodDisruptionBudget)
        ]

    def update(self, trial: Transaction, missing: Iterable[Pod]) -> None:
        """Write the status of each budget while these pods are without a place."""
        gone = list(missing)
        for each in self._budgets:
            allowed = max(0, each.allowed - sum(map(each.covers, gone)))
            now = self._cluster.get(PodDisruptionBudget, each.budget.key)
            if now is not None and now.status.disruptions_allowed != allowed:
                trial.update(attrs.evolve(now, status=attrs.evolve(now.status, disruptions_allowed=allowed)))


def _allowed(budget: PodDisruptionBudget, cluster: Cluster) -> int:
    if budget.status.expected_pods or budget.status.disruptions_allowed:
        return budget.status.disruptions_allowed
    selector = as_selector(budget.spec.selector)
    pods = [
        pod
        for pod in cluster.list(Pod, budget.namespace)
        if selector.matches(pod.labels) and not pod.is_terminal
    ]
    healthy = sum(bool(pod.node_name) and not pod.is_terminating for pod in pods)
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if most is not None:
        expected = _expected(pods, cluster)
        wanted = max(0, expected - _scaled(most, expected))
    elif isinstance(least, str):
        expected = _expected(pods, cluster)
        wanted = _scaled(least, expected)
    else:
        expected, wanted = len(pods), least or 0
    return max(0, healthy - wanted) if expected else 0


def _scaled(value: int | str, of: int) -> int:
    """A count, or a percentage of a count, rounded up."""
    return value if isinstance(value, int) else -(-int(value.removesuffix("%")) * of // 100)


def _expected(pods: Sequence[Pod], cluster: Cluster) -> int:
    """How many pods their controllers want, all together; a pod without a controller isn't counted."""
    owners: dict[OwnerReference, list[Pod]] = {}
    for pod in pods:
        if (owner := pod.metadata.controller) is not None:
            owners.setdefault(owner, []).append(pod)
    return sum(_wanted(owner, there, cluster) for owner, there in owners.items())


def _wanted(owner: OwnerReference, pods: Sequence[Pod], cluster: Cluster) -> int:
    kind = _SCALED.get(owner.kind)
    found = None if kind is None else cluster.get(kind, f"{pods[0].namespace}/{owner.name}")
    return max(len(pods), 0 if found is None else found.spec.replicas)
