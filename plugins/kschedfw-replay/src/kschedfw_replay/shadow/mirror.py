"""A private, read-only copy of a cluster, changed by events only, which can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from kschedfw import CustomObject, CustomResource, Pod
from kschedfw.api import Named, PodCondition
from kschedfw.cluster import Cluster, EventType, Handler, T, WatchEvent


class Mirror:
    """The `Cluster` that a shadow's scheduler sees: objects as `apply` leaves them. For one thread.

    Every write does nothing: the scheduler and its plugins may ask for one, and it goes nowhere.
    """

    def __init__(self, source: Cluster) -> None:
        """Create the copy. Custom objects, and kinds without an event so far, are read from `source` when asked for.

        Reading them makes a `KubernetesCluster` follow a kind that only a plugin knows.
        """
        self._source = source
        self._objects: dict[type[Named], dict[str, Named]] = {}
        self._listed: dict[type[Named], dict[str | None, tuple[Named, ...]]] = {}
        """The results of `list`: plugins list Services for every pod, and these seldom change."""
        self._handlers: list[Handler] = []

    def apply(self, event: WatchEvent) -> WatchEvent | None:
        """Apply the event, and tell the watchers. Return the event that takes it back; None if nothing changed.

        The state before is the one that is known here, whatever the event says.
        """
        obj, objects = event.object, self._objects.setdefault(type(event.object), {})
        old, new = objects.get(obj.key), None if event.type is EventType.DELETED else obj
        if new is not None:
            objects[obj.key] = new
        elif old is not None:
            del objects[obj.key]
        else:
            return None
        self._listed.pop(type(obj), None)
        for told in _steps(old, new):
            # A copy, since a handler may unsubscribe.
            for handler in tuple(self._handlers):
                handler(told)
        if old is None:
            return WatchEvent(EventType.DELETED, obj)
        return WatchEvent(EventType.ADDED if new is None else EventType.MODIFIED, old, new)

    # --- reading ---

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object, as `Cluster.get` does."""
        objects = self._known(kind)
        return self._source.get(kind, key) if objects is None else cast("T | None", objects.get(key))

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """Return the objects of a kind, as `Cluster.list` does."""
        objects = self._known(kind)
        if objects is None:
            return self._source.list(kind, namespace)
        results = self._listed.setdefault(kind, {})
        if namespace not in results:
            results[namespace] = tuple(
                obj for obj in objects.values() if namespace is None or obj.namespace == namespace
            )
        return cast("Sequence[T]", results[namespace])

    def watch(self, handler: Handler) -> Callable[[], None]:
        """Watch a kind, as `Cluster.watch` does."""
        for objects in tuple(self._objects.values()):
            for obj in tuple(objects.values()):
                handler(WatchEvent(EventType.ADDED, obj))
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def _known(self, kind: type[Named]) -> dict[str, Named] | None:
        return None if issubclass(kind, CustomObject | CustomResource) else self._objects.get(kind)

    # --- writing, which does nothing ---

    def add(self, obj: T) -> T:
        return obj

    def update(self, obj: T) -> T:
        return obj

    def bind(self, pod: Pod, node_name: str) -> None:
        pass

    def delete(self, obj: Named) -> None:
        pass

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        pass

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        pass


def _steps(old: Named | None, new: Named | None) -> Iterator[WatchEvent]:
    """Yield the event as a scheduler sees it. A pod that loses its node becomes a deletion and an addition."""
    if new is None:
        assert old is not None
        yield WatchEvent(EventType.DELETED, old)
    elif old is None:
        yield WatchEvent(EventType.ADDED, new)
    elif old.uid != new.uid or (
        isinstance(old, Pod) and isinstance(new, Pod) and old.node_name and not new.node_name
    ):
        yield WatchEvent(EventType.DELETED, old)
        yield WatchEvent(EventType.ADDED, new)
    else:
        yield WatchEvent(EventType.MODIFIED, new, old)
