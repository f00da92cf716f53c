"""The objects of one kind as they were last told, and what a change of them is to a watcher."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from kschedfw.api.meta import Named
from kschedfw.cluster import EventType, WatchEvent

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class Store:
    """Objects by key, oldest first. Not thread-safe: whoever uses it holds a lock.

    What comes in may come twice, or late, as after a connection was cut. What comes out is each change once, in order.
    """

    def __init__(self) -> None:
        self._objects: dict[str, Named] = {}
        self._listed: dict[str | None, tuple[Named, ...]] = {}
        """What `list` gave: plugins ask for Services with every pod, and they seldom change."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> Named | None:
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> Sequence[Named]:
        listed = self._listed.get(namespace)
        if listed is None:
            listed = tuple(
                obj for obj in self._objects.values() if namespace is None or obj.namespace == namespace
            )
            self._listed[namespace] = listed
        return listed

    def put(self, obj: Named) -> Iterator[WatchEvent]:
        """Take a state of an object; older ones than the present are passed over."""
        key = obj.key
        old = self._objects.get(key)
        if old is not None and old.uid != obj.uid:
            yield from self.remove(key)
            old = None
        if old is not None and not _is_newer(obj, old):
            return
        self._objects[key] = obj
        self._listed.clear()
        if old is None:
            yield WatchEvent(EventType.ADDED, obj)
        else:
            yield WatchEvent(EventType.MODIFIED, obj, old)

    def remove(self, key: str, last: Named | None = None) -> Iterator[WatchEvent]:
        """Take that an object is gone; `last` is its last state, where that is known."""
        old = self._objects.get(key)
        if old is None or (last is not None and last.uid != old.uid):
            return
        del self._objects[key]
        self._listed.clear()
        yield WatchEvent(EventType.DELETED, old if last is None else last)

    def replace(self, objects: Iterable[Named], unreadable: Iterable[str] = ()) -> Iterator[WatchEvent]:
        """Take a whole list. What isn't in it is gone, unless it is there but `unreadable` now."""
        present = {obj.key: obj for obj in objects}
        kept = {*present, *unreadable}
        for key in [key for key in self._objects if key not in kept]:
            yield from self.remove(key)
        # A later list comes in the order of its changes, as a watch does: what has a version has seen all before it.
        for obj in sorted(present.values(), key=_version if self._objects else _age):
            yield from self.put(obj)


def _age(obj: Named) -> tuple[datetime, str]:
    return obj.metadata.creation_timestamp or _EARLIEST, obj.key


def _version(obj: Named) -> tuple[int, str]:
    version = obj.metadata.resource_version
    return int(version) if version.isdecimal() else 0, obj.key


def _is_newer(obj: Named, old: Named) -> bool:
    version, known = obj.metadata.resource_version, old.metadata.resource_version
    if version.isdecimal() and known.isdecimal():
        return int(version) > int(known)
    return version != known
