"""A copy of a cluster's objects in memory, kept up to date by the changes that it is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from kschedfw.api.custom import CustomObject, CustomResource
from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.meta import Named
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.cluster.watch import ObjectStore

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Named)


class ObjectCopy(ObjectStore):
    """The objects of a cluster, as `Cluster` reads them. Thread-safe.

    It is told of changes by `take`, and of all objects at once by `replace`. Its own watchers are told what
    differs from what it had: a change that it knows already is no change, and `old` is the object that it had.
    """

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """As `Cluster.list`. Objects of a custom kind that can't be read as the class are left out and logged."""
        with self.lock:
            stored_as = CustomObject if issubclass(kind, CustomResource) else kind
            objects = tuple(self._objects.get(stored_as, {}).values())
        if issubclass(kind, CustomResource):
            objects = tuple(obj for obj in map(_reader(kind), objects) if obj is not None)
        return cast("Sequence[T]", [obj for obj in objects if namespace in (None, obj.namespace)])

    def take(self, event: WatchEvent) -> None:
        """Take a change, and tell the watchers."""
        with self.lock:
            if event.type is EventType.DELETED:
                self._remove(_as_stored(event.object))
            else:
                self._put(_as_stored(event.object))
        self._deliver()

    def replace(self, objects: Iterable[Named]) -> None:
        """Take all objects that there are now, and tell the watchers the differences."""
        present = [_as_stored(obj) for obj in objects]
        keys = {(type(obj), obj.key) for obj in present}
        with self.lock:
            known = [obj for kind in self._objects.values() for obj in kind.values()]
            for obj in known:
                if (type(obj), obj.key) not in keys:
                    self._remove(obj)
            for obj in present:
                self._put(obj)
        self._deliver()

    def close(self) -> None:
        """Tell the watchers nothing more."""
        with self.lock:
            for subscription in self._subscriptions:
                subscription.close()
            self._subscriptions.clear()

    def _put(self, obj: Named) -> None:
        objects = self._objects.setdefault(type(obj), {})
        old = objects.get(obj.key)
        if old == obj:
            return
        # another object of this name: the watch missed the deletion of the old one
        if old is not None and old.uid != obj.uid:
            self._remove(old)
            old = None
        objects[obj.key] = obj
        self._publish(WatchEvent(EventType.ADDED if old is None else EventType.MODIFIED, obj, old))

    def _remove(self, obj: Named) -> None:
        last = self._objects.get(type(obj), {}).pop(obj.key, None)
        if last is not None:
            self._publish(WatchEvent(EventType.DELETED, last))


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
