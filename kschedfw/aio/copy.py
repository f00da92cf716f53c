"""A copy of a cluster's objects in memory, kept up to date by the changes that it is told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from kschedfw.api.custom import CustomObject, CustomResource, custom_key
from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.meta import Named
from kschedfw.cluster import EventType, Handler, Subscription, WatchEvent

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Named)


class ObjectCopy:
    """The objects of a cluster, as `Cluster` reads them. Thread-safe.

    It is told of changes by `take`, and of all objects at once by `replace`. Its own watchers are told what
    differs from what it had: a change that it knows already is no change, and `old` is the object that it had.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[type[Named], dict[str, Named]] = {}
        self._subscriptions: list[Subscription] = []

    def get(self, kind: type[T], key: str) -> T | None:
        """As `Cluster.get`."""
        with self._lock:
            if issubclass(kind, CustomResource):
                stored = self._objects.get(CustomObject, {}).get(custom_key(kind.kind, key))
                return cast("T | None", kind.of(stored))
            return cast("T | None", self._objects.get(kind, {}).get(key))

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """As `Cluster.list`. Objects of a custom kind that can't be read as the class are left out and logged."""
        with self._lock:
            stored_as = CustomObject if issubclass(kind, CustomResource) else kind
            objects = tuple(self._objects.get(stored_as, {}).values())
        if issubclass(kind, CustomResource):
            objects = tuple(obj for obj in map(_reader(kind), objects) if obj is not None)
        return cast("Sequence[T]", [obj for obj in objects if namespace in (None, obj.namespace)])

    def watch(self, handler: Handler) -> Callable[[], None]:
        """As `Cluster.watch`."""
        with self._lock:
            objects = [obj for kind in self._objects.values() for obj in kind.values()]
            subscription = Subscription(handler, [WatchEvent(EventType.ADDED, obj) for obj in objects])
            self._subscriptions.append(subscription)
        subscription.deliver()

        def unsubscribe() -> None:
            subscription.close()
            with self._lock:
                if subscription in self._subscriptions:
                    self._subscriptions.remove(subscription)

        return unsubscribe

    def take(self, event: WatchEvent) -> None:
        """Take a change, and tell the watchers."""
        with self._lock:
            if event.type is EventType.DELETED:
                self._remove(_as_stored(event.object))
            else:
                self._put(_as_stored(event.object))
        self._deliver()

    def replace(self, objects: Iterable[Named]) -> None:
        """Take all objects that there are now, and tell the watchers the differences."""
        present = [_as_stored(obj) for obj in objects]
        keys = {(type(obj), obj.key) for obj in present}
        with self._lock:
            known = [obj for kind in self._objects.values() for obj in kind.values()]
            for obj in known:
                if (type(obj), obj.key) not in keys:
                    self._remove(obj)
            for obj in present:
                self._put(obj)
        self._deliver()

    def close(self) -> None:
        """Tell the watchers nothing more."""
        with self._lock:
            for subscription in self._subscriptions:
                subscription.close()
            self._subscriptions.clear()

    def _put(self, obj: Named) -> None:
        objects = self._objects.setdefault(type(obj), {})
        old = objects.get(obj.key)
        if old == obj:
            return
        if old is not None and old.uid != obj.uid:  # its deletion was missed
            self._remove(old)
            old = None
        objects[obj.key] = obj
        self._publish(WatchEvent(EventType.ADDED if old is None else EventType.MODIFIED, obj, old))

    def _remove(self, obj: Named) -> None:
        last = self._objects.get(type(obj), {}).pop(obj.key, None)
        if last is not None:
            self._publish(WatchEvent(EventType.DELETED, last))

    def _publish(self, event: WatchEvent) -> None:
        for subscription in self._subscriptions:
            subscription.put(event)

    def _deliver(self) -> None:
        # Without the lock: a handler may take a lock that another thread holds while it waits for this one.
        for subscription in tuple(self._subscriptions):
            subscription.deliver()


def _as_stored(obj: Named) -> Named:
    return obj.as_custom_object() if isinstance(obj, CustomResource) else obj


def _reader(kind: type[CustomResource]) -> Callable[[Named], CustomResource | None]:
    def read(obj: Named) -> CustomResource | None:
        try:
            return kind.of(obj)
        except ManifestError as error:
            _log.warning("left out of the list of %s: %s", kind.__name__, error)
            return None

    return read
