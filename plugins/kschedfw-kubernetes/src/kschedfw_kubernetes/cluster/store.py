"""The last known objects of one kind. Changes are returned as watch events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kschedfw.api import Named
from kschedfw.cluster import EventType, WatchEvent


class Store:
    """Objects by key, in order of arrival. Not thread-safe: callers hold a lock.

    Incoming states may be repeated or late, for example after a lost connection. Each change is yielded once, in order.
    """

    def __init__(self) -> None:
        self._objects: dict[str, Named] = {}
        self._listed: dict[str | None, tuple[Named, ...]] = {}
        """Cached results of `list`: plugins list Services for every pod, although these rarely change."""

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
        """Store an object's state, unless the stored one is newer."""
        key = obj.key
        old = self._objects.get(key)
        if old is not None and old.uid != obj.uid:
            # The deletion was missed, and another object has the name.
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
        """Remove an object; `last` is its last state, if known."""
        old = self._objects.get(key)
        # A late deletion may be that of an earlier object of the same name.
        if old is None or (last is not None and last.uid != old.uid):
            return
        del self._objects[key]
        self._listed.clear()
        yield WatchEvent(EventType.DELETED, old if last is None else last)

    def replace(self, objects: Iterable[Named], unreadable: Iterable[str] = ()) -> Iterator[WatchEvent]:
        """Replace all objects by a list. Delete objects that are absent from it, except for `unreadable` ones.

        The events of the first list are in its order, by key. In this order kube-scheduler queues the pods that wait at
        its start; with streamed lists, its default, the order of pods of equal priority is random. The events of later
        lists are in the order of versions, as in a watch, so that a watcher that has seen a version has seen all
        earlier ones.
        """
        present = {obj.key: obj for obj in objects}
        kept = {*present, *unreadable}
        for key in [key for key in self._objects if key not in kept]:
            yield from self.remove(key)
        for obj in sorted(present.values(), key=_version) if self._objects else present.values():
            yield from self.put(obj)


def _version(obj: Named) -> tuple[int, str]:
    version = obj.metadata.resource_version
    return int(version) if version.isdecimal() else 0, obj.key


def _is_newer(obj: Named, old: Named) -> bool:
    version, known = obj.metadata.resource_version, old.metadata.resource_version
    if version.isdecimal() and known.isdecimal():
        return int(version) > int(known)
    # Versions of other stores than etcd can't be compared, so any other version counts as newer.
    return version != known
