"""A site's records of its machines and tasks: a cluster of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from kschedfw import Node, Pod
from kschedfw.api import Named, PodCondition
from kschedfw.cluster import Cluster, EventType, WatchEvent

T = TypeVar("T", bound=Named)


class Site(Cluster):
    """All that a scheduler and its plugins ask of a cluster."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._objects: dict[tuple[type[Named], str], Named] = {(Node, node.key): node for node in nodes}
        self._watchers: list[Callable[[WatchEvent], None]] = []

    def get(self, kind: type[T], key: str) -> T | None:
        return cast("T | None", self._objects.get((kind, key)))

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        found = (obj for obj in self._objects.values() if isinstance(obj, kind))
        return [obj for obj in found if namespace is None or obj.namespace == namespace]

    def watch(self, handler: Callable[[WatchEvent], None]) -> Callable[[], None]:
        for obj in self._objects.values():
            handler(WatchEvent(EventType.ADDED, obj))
        self._watchers.append(handler)
        return lambda: self._watchers.remove(handler)

    def add(self, obj: T) -> T:
        self._store(obj)
        return obj

    def update(self, obj: T) -> T:
        self._store(obj)
        return obj

    def bind(self, pod: Pod, node_name: str) -> None:
        # Here a real site would start the task.
        self._store(pod.bound_to(node_name))

    def delete(self, obj: Named) -> None:
        gone = self._objects.pop((type(obj), obj.key))
        self._tell(WatchEvent(EventType.DELETED, gone))

    def _store(self, obj: Named) -> None:
        old = self._objects.get((type(obj), obj.key))
        self._objects[type(obj), obj.key] = obj
        self._tell(WatchEvent(EventType.ADDED if old is None else EventType.MODIFIED, obj, old))

    def _tell(self, event: WatchEvent) -> None:
        for watcher in tuple(self._watchers):
            watcher(event)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Do nothing: this site keeps a state for jobs, and none for tasks."""

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Do nothing: the site keeps no journal."""
