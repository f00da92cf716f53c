"""Selectors for default constraints, derived from the Services and the controller of a pod."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import attrs

from kschedfw import ClusterClient, FrozenDict, Pod
from kschedfw.api import (
    EMPTY,
    BoundedDict,
    LabelSelector,
    ReplicaSet,
    ReplicationController,
    Selector,
    Service,
    StatefulSet,
)
from kschedfw.api.records import frozen
from kschedfw.api.selectors import EVERYTHING

_MOST_KEPT = 4096


@frozen(eq=False)
class _Services:
    """The services of a namespace, and their combined selectors by pod labels, as far as asked."""

    services: Sequence[Service]
    selected_by: BoundedDict[FrozenDict[str, str], FrozenDict[str, str]] = attrs.field(
        factory=lambda: BoundedDict(_MOST_KEPT)
    )

    def equalities(self, labels: FrozenDict[str, str]) -> FrozenDict[str, str]:
        """Return the requirements of all services that select these labels; they can't contradict each other."""
        known = self.selected_by.get(labels)
        if known is None:
            known = self.selected_by[labels] = FrozenDict(
                pair
                for service in self.services
                if service.spec.selector.items() <= labels.items()
                for pair in service.spec.selector.items()
            )
        return known


class DefaultSelectors:
    """The selectors of default constraints, derived from a pod's Services and controller.

    The cluster is asked for its services every time, but they are only looked at after a change.
    """

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._services: BoundedDict[str, _Services] = BoundedDict(_MOST_KEPT)

    def of(self, pod: Pod) -> Selector:
        """Return the selector made of the pod's Services and controller; selects everything if the pod has neither."""
        meta = pod.metadata
        namespace = meta.namespace
        services = self._cluster.list(Service, namespace)
        labels = self._equalities(services, namespace, meta.labels) if services else EMPTY
        owner = meta.controller if meta.owner_references else None
        if owner is None:
            return _joined(labels, None) if labels else EVERYTHING

        key = f"{namespace}/{owner.name}"
        controller: ReplicaSet | StatefulSet | None = None
        match owner.api_version, owner.kind:
            case "v1", "ReplicationController":
                if (replication_controller := self._cluster.get(ReplicationController, key)) is not None:
                    labels = FrozenDict({**labels, **replication_controller.spec.selector})
            case "apps/v1", "ReplicaSet":
                controller = self._cluster.get(ReplicaSet, key)
            case "apps/v1", "StatefulSet":
                controller = self._cluster.get(StatefulSet, key)
        return _joined(labels, None if controller is None else controller.spec.selector)

    def _equalities(
        self, services: Sequence[Service], namespace: str, labels: FrozenDict[str, str]
    ) -> FrozenDict[str, str]:
        known = self._services.get(namespace)
        # Clusters hand the same objects out until they change, so this compares identities.
        if known is None or (known.services is not services and known.services != services):
            known = self._services[namespace] = _Services(services)
        return known.equalities(labels)


@functools.lru_cache(maxsize=_MOST_KEPT)
def _joined(labels: FrozenDict[str, str], controllers: LabelSelector | None) -> Selector:
    selector = Selector.from_labels(labels)
    if controllers is None:
        return selector
    return Selector((*selector.requirements, *controllers.compile().requirements))
