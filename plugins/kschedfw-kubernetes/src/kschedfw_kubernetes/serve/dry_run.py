"""A cluster that reads from a real one and only logs writes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import attrs

from kschedfw import EnabledPlugin, ExtensionPoint, Pod, SchedulerConfiguration
from kschedfw.api import Named, PodCondition
from kschedfw.cluster import Cluster, Handler, T
from kschedfw.scheduler import Structured

_log = logging.getLogger(__name__)

# A profile must have a bind plugin. This one writes through the cluster, which only logs.
_BINDER = EnabledPlugin("DefaultBinder")


class DryRunCluster:
    """A cluster that forwards reads, and only logs writes.

    A pod that would be bound stays assumed: it takes its node's room, as if it were bound. Victims of a preemption
    aren't deleted, so the preemptor keeps waiting.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def get(self, kind: type[T], key: str) -> T | None:
        return self._cluster.get(kind, key)

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        return self._cluster.list(kind, namespace)

    def watch(self, handler: Handler) -> Callable[[], None]:
        return self._cluster.watch(handler)

    def add(self, obj: T) -> T:
        _tell("add", obj)
        return obj

    def update(self, obj: T) -> T:
        _tell("update", obj)
        return obj

    def bind(self, pod: Pod, node_name: str) -> None:
        _tell("bind", pod, node=node_name)

    def delete(self, obj: Named) -> None:
        _tell("delete", obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        _tell("patch the status of", pod, condition=condition, nominatedNodeName=nominated_node_name)

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Do nothing. The log already has what the event says."""


def without_writes(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """Return the configuration without other writers: plugins after reserve, binding extenders, leader election."""
    profiles = tuple(
        attrs.evolve(
            profile,
            points={
                **profile.points,
                ExtensionPoint.PRE_BIND: (),
                ExtensionPoint.BIND: (_BINDER,),
                ExtensionPoint.POST_BIND: (),
            },
        )
        for profile in configuration.profiles
    )
    return attrs.evolve(
        configuration,
        profiles=profiles,
        extenders=tuple(attrs.evolve(extender, bind_verb="") for extender in configuration.extenders),
        leader_election=attrs.evolve(configuration.leader_election, leader_elect=False),
    )


def _tell(verb: str, obj: Named, **values: object) -> None:
    _log.debug(
        Structured("Dry run: not written", verb=verb, kind=type(obj).__name__, object=obj.key, **values)
    )
