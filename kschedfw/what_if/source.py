"""Takes the state over that questions are about."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import TypeAlias

from kschedfw.api.manifests import Manifests
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster, InMemoryCluster, RevertibleCluster, WatchEvent
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.what_if.errors import WhatIfError

Source: TypeAlias = Manifests | Iterable[Named] | Cluster | Scheduler
"""Manifests, objects, a cluster, or a scheduler, whose view is the cluster's and the pods that it has assumed."""


def take_over(source: Source) -> RevertibleCluster:
    """A cluster of its own with the source's objects, at one moment. The source isn't changed.

    Pods that a scheduler has assumed are bound in it.
    """
    if isinstance(source, Manifests):
        return RevertibleCluster(source.objects())
    if isinstance(source, Scheduler):
        lock = source.cluster.lock if isinstance(source.cluster, InMemoryCluster) else nullcontext()
        with lock:
            objects = _objects_of(source.cluster)
            seen = source.cache.dump()
        assumed = {pod.uid: pod.node_name for pod in seen.pods if pod.uid in seen.assumed}
        return RevertibleCluster(_with_assumed(objects, assumed))
    if isinstance(source, Iterable):
        return RevertibleCluster(_checked(source))
    if hasattr(source, "watch"):
        return RevertibleCluster(_objects_of(source))
    raise WhatIfError(f"expected manifests, objects, a cluster or a scheduler, found {type(source).__name__}")


def _objects_of(cluster: Cluster) -> list[Named]:
    events: list[WatchEvent] = []
    cluster.watch(events.append)()  # a watch begins with all that is there; this one ends with it
    return [event.object for event in events]


def _with_assumed(objects: Iterable[Named], assumed: dict[str, str]) -> Iterable[Named]:
    for obj in objects:
        if isinstance(obj, Pod) and not obj.node_name and obj.uid in assumed:
            obj = obj.bound_to(assumed[obj.uid])
        yield obj


def _checked(objects: Iterable[object]) -> Iterable[Named]:
    for obj in objects:
        if not isinstance(obj, Named):
            raise WhatIfError(f"expected objects such as nodes and pods, found {obj!r}")
        yield obj
