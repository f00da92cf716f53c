"""The interface of a cluster whose methods are awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Protocol, TypeVar

from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import WatchEvent

T = TypeVar("T", bound=Named)


class AsyncCluster(Protocol):
    """Where objects live, with methods that are awaited. `ClusterBridge` makes a `Cluster` of it.

    It has neither `get` nor `list`: a scheduler reads a copy in memory, which `watch` keeps up to date. All methods are
    called on one event loop, several at a time. The writes raise what those of `Cluster` raise.
    """

    async def watch(self) -> tuple[Iterable[Named], AsyncIterator[WatchEvent]]:
        """Return all objects, oldest first, and the changes from then on.

        The changes of an object come in order, and none is lost. A change may come twice, may be part of the objects
        already, and needs no `old`. The next change is asked for after the last one has been handled. When the
        iterator ends or raises, `watch` is called again.
        """
        ...

    async def add(self, obj: T) -> T:
        """Create the object and return it as stored, as `Cluster.add`."""
        ...

    async def update(self, obj: T) -> T:
        """Replace the object and return it as stored, as `Cluster.update`."""
        ...

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Assign the pod to the node, as `Cluster.bind`."""
        ...

    async def delete(self, obj: Named) -> None:
        """Delete the object, as `Cluster.delete`."""
        ...

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Set a condition and the nominated node of a pod, as `Cluster.patch_pod_status`."""
        ...

    async def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Record an event about the object for its user, as `Cluster.record_event`."""
        ...
