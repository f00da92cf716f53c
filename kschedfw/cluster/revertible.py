"""A cluster in memory that can go back to an earlier state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from kschedfw.api.meta import Named
from kschedfw.api.records import frozen
from kschedfw.cluster.errors import ConflictError
from kschedfw.cluster.memory import InMemoryCluster
from kschedfw.cluster.protocol import EventType, Handler, T, WatchEvent
from kschedfw.cluster.watch import stored_as

Identity: TypeAlias = tuple[type[Named], str, str]
"""The kind of an object, its key and its uid."""


@frozen
class RevertibleChange:
    """A write, and the object's number in the order of its kind, if it has one."""

    event: WatchEvent
    place: int | None = None


class RevertibleCluster(InMemoryCluster):
    """An in-memory cluster that keeps a log of its writes, so that `revert_to` can undo the latest ones.

    Objects come back as they were: the same values with the same uids and resource versions, at their old
    places in `list`. Watchers get one event per object with the net change, after all objects are restored:
    what they read then is the earlier state. Only resource versions and uids that were given out aren't given
    again.
    """

    def __init__(self, objects: Iterable[Named] = ()) -> None:
        self._log: list[RevertibleChange] = []
        self._places: dict[type[Named], dict[str, int]] = {}
        """The objects' places in the list, as ascending numbers, by kind and key; of kinds with deleted objects."""
        self._next_place = 0
        self._out_of_order: set[type[Named]] = set()
        # After the fields: adding the objects publishes events, which are logged here.
        super().__init__(objects)
        self._log.clear()

    @property
    def position(self) -> int:
        """The length of the log, for `revert_to`."""
        return len(self._log)

    def deleted_since(self, position: int, kind: type[T]) -> Sequence[T]:
        """Return the objects of the kind that were deleted since the log had this length."""
        events = (change.event for change in self._log[position:])
        return [
            event.object
            for event in events
            if event.type is EventType.DELETED and isinstance(event.object, kind)
        ]

    def forget_log(self) -> None:
        """Make all writes so far final."""
        with self.lock:
            self._log.clear()

    def changes_since(self, position: int) -> Sequence[RevertibleChange]:
        """Return the writes since the log had this length."""
        return tuple(self._log[position:])

    def revert_to(self, position: int) -> None:
        """Undo all writes since the log had this length."""
        with self.lock:
            changes = self._log[position:]
            del self._log[position:]
            self._undo(changes)
        self._deliver()

    def undo(self, changes: Sequence[RevertibleChange]) -> None:
        """Undo consecutive writes, as a write of its own, which can be undone in turn.

        Raises:
            ConflictError: one of the objects has been written since; nothing was changed.
        """
        with self.lock:
            self._check_undo(changes)
            # Before `_undo`, which forgets the places of the objects that it takes away.
            inverses = [self._inverse(change) for change in reversed(changes)]
            self._undo(changes)
            self._log += inverses
        self._deliver()

    def _inverse(self, change: RevertibleChange) -> RevertibleChange:
        """Return the write that undoes a change."""
        event, kind = change.event, type(change.event.object)
        if event.type is EventType.DELETED:
            return RevertibleChange(WatchEvent(EventType.ADDED, event.object), change.place)
        if event.old is not None:
            return RevertibleChange(WatchEvent(EventType.MODIFIED, event.old, event.object))
        self._number(kind)
        place = self._places[kind].get(event.object.key, change.place or 0)
        return RevertibleChange(WatchEvent(EventType.DELETED, event.object), place)

    def _check_undo(self, changes: Sequence[RevertibleChange]) -> None:
        latest: dict[tuple[type[Named], str], Named | None] = {}
        for change in changes:
            event = change.event
            gone = event.type is EventType.DELETED
            latest[type(event.object), event.object.key] = None if gone else event.object
        for (kind, key), obj in latest.items():
            # Every write stores a new object, so identity tells.
            if self._objects.get(kind, {}).get(key) is not obj:
                raise ConflictError(f"{kind.__name__} {key} has been changed since")

    def _undo(self, changes: Sequence[RevertibleChange]) -> None:
        before: dict[Identity, Named | None] = {}
        after: dict[Identity, Named | None] = {}
        for change in reversed(changes):
            obj, old = change.event.object, change.event.old
            identity = type(obj), obj.key, obj.uid
            after.setdefault(identity, None if change.event.type is EventType.DELETED else obj)
            # Popped first: the dict is ordered by when objects got the state that `after` has.
            before.pop(identity, None)
            if change.event.type is EventType.DELETED:
                self._put_back(obj, change.place)
                old = obj
            elif old is None:
                del self._objects[type(obj)][obj.key]
                self._places.get(type(obj), {}).pop(obj.key, None)
            else:
                self._objects[type(obj)][obj.key] = old
            before[identity] = old
        for kind in {kind for kind, _, _ in before}:
            self._forget_lists(kind)
        for identity, old in before.items():
            self._publish_undone(after[identity], old)

    def _put_back(self, obj: Named, place: int | None) -> None:
        kind = type(obj)
        self._objects.setdefault(kind, {})[obj.key] = obj
        assert place is not None, "deletions number the places"
        self._places[kind][obj.key] = place
        self._out_of_order.add(kind)

    def _publish_undone(self, now: Named | None, before: Named | None) -> None:
        if now is before:
            return
        if before is None:
            assert now is not None
            event = WatchEvent(EventType.DELETED, now)
        else:
            event = WatchEvent(EventType.ADDED if now is None else EventType.MODIFIED, before, now)
        # The base's method, since what is undone is no entry of the log.
        super()._publish(event)

    # --- writing ---

    def delete(self, obj: Named) -> None:
        with self.lock:
            self._number(stored_as(type(obj)))
        super().delete(obj)

    def _publish(self, event: WatchEvent) -> None:
        place = None
        places = self._places.get(type(event.object))
        if places is not None and event.type is EventType.DELETED:
            place = places.pop(event.object.key)
        elif places is not None and event.type is EventType.ADDED:
            place = places[event.object.key] = self._next_place
            self._next_place += 1
        self._log.append(RevertibleChange(event, place))
        super()._publish(event)

    def _number(self, kind: type[Named]) -> None:
        """Number the objects of a kind by their order, unless they are numbered."""
        if kind not in self._places:
            objects = self._objects.get(kind, {})
            self._places[kind] = {key: place for place, key in enumerate(objects)}
            self._next_place = max(self._next_place, len(objects))

    # --- order ---

    def _sort(self, kind: type[Named]) -> None:
        """Sort the objects of a kind, if needed. Done lazily, since many deletions may be undone before a read."""
        if kind in self._out_of_order:
            self._out_of_order.discard(kind)
            objects, places = self._objects[kind], self._places[kind]
            self._objects[kind] = {key: objects[key] for key in sorted(objects, key=places.__getitem__)}

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        with self.lock:
            self._sort(stored_as(kind))
            return super().list(kind, namespace)

    def watch(self, handler: Handler) -> Callable[[], None]:
        with self.lock:
            for kind in tuple(self._out_of_order):
                self._sort(kind)
        return super().watch(handler)

    def journal(self, write: Handler) -> Callable[[], None]:
        with self.lock:
            for kind in tuple(self._out_of_order):
                self._sort(kind)
        return super().journal(write)
