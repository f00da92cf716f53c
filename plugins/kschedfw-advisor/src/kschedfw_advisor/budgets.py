"""The status of PodDisruptionBudgets while pods are evicted and replaced, as the disruption controller writes it."""

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
class _Health:
    """The pods of a budget: the healthy ones, the number that must be healthy, and the evictions that are allowed."""

    current: int
    desired: int
    allowed: int


@attrs.frozen
class _Budget:
    """A budget, and its health before any of its pods is evicted."""

    budget: PodDisruptionBudget
    health: _Health

    def covers(self, pod: Pod) -> bool:
        selector = as_selector(self.budget.spec.selector)
        return pod.namespace == self.budget.namespace and selector.matches(pod.labels)


class Budgets:
    """The budgets of a cluster. An evicted pod counts as healthy again once it has another place.

    A budget with a status allows as many disruptions as that says. For one without, as in manifests that no controller
    has seen, they are computed as the disruption controller does (v1.36 `updatePdbStatus`), where every pod with a node
    is healthy unless its condition Ready says no.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._unready = {pod.key for pod in cluster.list(Pod) if pod.is_unready}
        self._budgets = [
            _Budget(budget, _health(budget, cluster)) for budget in cluster.list(PodDisruptionBudget)
        ]

    def update(self, trial: Transaction, missing: Iterable[Pod]) -> None:
        """Write the status of each budget while these pods are without a place."""
        # An unready pod isn't counted as healthy, so its absence takes nothing away.
        gone = [pod for pod in missing if pod.key not in self._unready]
        for each in self._budgets:
            now = self._cluster.get(PodDisruptionBudget, each.budget.key)
            if now is None:
                continue
            fewer = sum(map(each.covers, gone))
            status = attrs.evolve(
                now.status,
                disruptions_allowed=max(0, each.health.allowed - fewer),
                current_healthy=max(0, each.health.current - fewer),
                desired_healthy=each.health.desired,
            )
            if status != now.status:
                trial.update(attrs.evolve(now, status=status))


def _health(budget: PodDisruptionBudget, cluster: Cluster) -> _Health:
    status = budget.status
    # A controller that has seen the budget and its pods writes these.
    if status.expected_pods or status.disruptions_allowed:
        return _Health(status.current_healthy, status.desired_healthy, status.disruptions_allowed)
    selector = as_selector(budget.spec.selector)
    pods = [
        pod
        for pod in cluster.list(Pod, budget.namespace)
        if selector.matches(pod.labels) and not pod.is_terminal
    ]
    healthy = sum(bool(pod.node_name) and not pod.is_terminating and not pod.is_unready for pod in pods)
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if most is not None:
        expected = _expected(pods, cluster)
        wanted = max(0, expected - _scaled(most, expected))
    elif isinstance(least, str):
        expected = _expected(pods, cluster)
        wanted = _scaled(least, expected)
    # As in the disruption controller, a number in minAvailable needs no controllers: every pod that is there is
    # expected.
    else:
        expected, wanted = len(pods), least or 0
    # As in the disruption controller, a budget without expected pods allows nothing.
    return _Health(healthy, wanted, max(0, healthy - wanted) if expected else 0)


def _scaled(value: int | str, of: int) -> int:
    """A count, or a percentage of a count, rounded up."""
    # The disruption controller also rounds up the percentage of maxUnavailable.
    return value if isinstance(value, int) else -(-int(value.removesuffix("%")) * of // 100)


def _expected(pods: Sequence[Pod], cluster: Cluster) -> int:
    """Return the number of pods that the controllers of these pods want. Pods without a controller aren't counted."""
    owners: dict[OwnerReference, list[Pod]] = {}
    for pod in pods:
        if (owner := pod.metadata.controller) is not None:
            owners.setdefault(owner, []).append(pod)
    return sum(_wanted(owner, there, cluster) for owner, there in owners.items())


def _wanted(owner: OwnerReference, pods: Sequence[Pod], cluster: Cluster) -> int:
    kind = _SCALED.get(owner.kind)
    found = None if kind is None else cluster.get(kind, f"{pods[0].namespace}/{owner.name}")
    # An export may lack the controller, and dumps have workloads with 0 replicas.
    return max(len(pods), 0 if found is None else found.spec.replicas)
