"""Stores of objects that are watched: events come in order, to one handler at a time, and with no lock held."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar, cast

from kschedfw.api.custom import CustomObject, CustomResource, custom_key
from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.meta import Named
from kschedfw.cluster.protocol import EventType, Handler, WatchEvent

logger = logging.getLogger(__name__)
_LOG: Final = logging.getLogger("kschedfw.cluster.memory")

T = TypeVar("T", bound=Named)


class Subscription:
    """A handler of watch events, and the events that it hasn't been given yet.

    A writer queues the event with the cluster's lock held, which fixes the order, and delivers it after
    releasing the lock. So a handler may read, write and unsubscribe; events that it causes are delivered after
    it has returned. If another thread is delivering already, that thread delivers the event.
    """

    def __init__(self, handler: Handler, backlog: Iterable[WatchEvent]) -> None:
        self._handler = handler
        self._lock = threading.Lock()
        self._queue: deque[WatchEvent] = deque(backlog)
        self._delivering = False
        self._closed = False
        self.received = len(self._queue)
        """The number of events so far; `handled` is the number of those that the handler has returned from."""
        self.handled = 0

    def put(self, event: WatchEvent) -> None:
        """Queue the event. The caller is responsible for the order, and calls `deliver` later."""
        self.received += 1
        self._queue.append(event)

    def deliver(self) -> None:
        """Deliver the queued events, unless another thread is doing so.

        A handler's exception is logged and counts as handled: the write that caused the event succeeds, and the
        next event is delivered.
        """
        with self._lock:
            if self._delivering:
                return
            self._delivering = True
        queue, handler = self._queue, self._handler
        try:
            while True:
                try:
                    # Atomic, and only this thread takes events.
                    event = queue.popleft()
                except IndexError:
                    # Found empty anew and `_delivering` cleared under one lock: an event that is queued in between
                    # would otherwise stay until the next write.
                    with self._lock:
                        if self._closed:
                            queue.clear()
                        if not queue:
                            self._delivering = False
                            return
                    continue
                if self._closed:
                    continue
                try:
                    handler(event)
                except Exception:
                    logger.exception(
                        "watch handler %r failed on %s %s", handler, event.type, event.object.key
                    )
                self.handled += 1
        except BaseException:
            # Such as Ctrl-C inside a handler: without this no event would ever be delivered again.
            with self._lock:
                self._delivering = False
            raise

    def close(self) -> None:
        """Stop calling the handler. A call that is running in another thread isn't interrupted."""
        with self._lock:
            self._closed = True
            self._queue.clear()

    @property
    def is_closed(self) -> bool:
        return self._closed


class Journal:
    """A function that is called with every change, in the thread that makes it and with the cluster's lock held."""

    def __init__(self, write: Handler) -> None:
        self._write = write

    def put(self, event: WatchEvent) -> None:
        self._write(event)

    def deliver(self) -> None:
        """Do nothing: `put` has called the function already."""

    def close(self) -> None:
        """Do nothing: the cluster drops its reference."""


class ObjectStore:
    """The base of everything that has objects in memory and tells watchers of their changes. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """The lock of all objects. A thread that holds it must not wait for another thread."""
        self._objects: dict[type[Named], dict[str, Named]] = {}
        self._subscriptions: list[Subscription | Journal] = []
        self._malformed: set[tuple[type[Named], str, str]] = set()
        """The malformed objects that were logged: the class they were read as, key and resource version."""

    def __repr__(self) -> str:
        with self.lock:
            held = [f"{len(objects):,} {kind.__name__}" for kind, objects in self._objects.items() if objects]
        return f"<{type(self).__name__} with {', '.join(held) or 'no objects'}>"

    def get(self, kind: type[T], key: str) -> T | None:
        """Return the object of that kind and key, or None."""
        with self.lock:
            objects = self._objects.get(kind)
            if objects is None and issubclass(kind, CustomResource):
                stored = self._objects.get(CustomObject, {}).get(custom_key(kind.kind, key))
                return cast("T | None", kind.of(stored))
            return None if objects is None else objects.get(key)  # type: ignore[return-value]  # of the kind

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """Return the objects of the kind (in the namespace, if given), as `Cluster.list`.

        Objects of a custom kind that can't be read as the class are omitted and logged (`kschedfw.cluster.memory`);
        `get` raises a ManifestError for them.
        """
        with self.lock:
            return cast("Sequence[T]", [obj for obj in self._all(kind) if namespace in (None, obj.namespace)])

    def watch(self, handler: Handler) -> Callable[[], None]:
        """Watch the objects, as `Cluster.watch`; return after the existing objects have been delivered.

        They come kind by kind, in the order in which the kinds and their objects were added. A handler's
        exception is logged (`kschedfw.cluster.watch`), and the handler gets the next event all the same.
        """
        return self._subscribe(handler, (obj for kind in self._objects.values() for obj in kind.values()))

    def _subscribe(self, handler: Handler, objects: Iterable[Named]) -> Callable[[], None]:
        """Deliver the objects, then every change. Return a function that ends it."""
        with self.lock:
            # Read and registered under one lock: no change is missed, and none comes twice.
            subscription = Subscription(handler, [WatchEvent(EventType.ADDED, obj) for obj in objects])
            self._subscriptions.append(subscription)
        subscription.deliver()
        return self._unsubscriber(subscription)

    def _unsubscriber(self, subscription: Subscription | Journal) -> Callable[[], None]:
        def unsubscribe() -> None:
            subscription.close()
            with self.lock:
                if subscription in self._subscriptions:
                    self._subscriptions.remove(subscription)

        return unsubscribe

    def _publish(self, event: WatchEvent) -> None:
        """Queue the event for all watchers; called with the lock held."""
        for subscription in self._subscriptions:
            subscription.put(event)

    def _deliver(self) -> None:
        # Without the lock: a handler may take a lock that another thread holds while it waits for this one. A copy,
        # since handlers unsubscribe.
        for subscription in tuple(self._subscriptions):
            subscription.deliver()

    def _all(self, kind: type[Named]) -> Iterable[Named]:
        objects = self._objects.get(stored_as(kind), {}).values()
        if not issubclass(kind, CustomResource):
            return objects
        # Raises MissingKindError, also where there are no objects.
        _ = kind.kind
        read = (self._read_as(kind, obj) for obj in objects)
        return [obj for obj in read if obj is not None]

    def _read_as(self, kind: type[CustomResource], obj: Named) -> CustomResource | None:
        """Return the object as this class; None if it is of another kind, or malformed, which is logged once."""
        try:
            return kind.of(obj)
        except ManifestError as error:
            known = (kind, obj.key, obj.metadata.resource_version)
            if known not in self._malformed:
                self._malformed.add(known)
                _LOG.warning("left out of the list of %s: %s", kind.__name__, error)
            return None


def stored_as(kind: type[Named]) -> type[Named]:
    """Return the class under which objects of this class are stored."""
    return CustomObject if issubclass(kind, CustomResource) else kind
