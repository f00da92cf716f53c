"""A cluster whose methods are awaited, and the `Cluster` that stands for it, with a copy of its objects."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol, Self, TypeVar

from kschedfw.api.custom import CustomResource
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import ClusterError, EventType, Handler, WatchEvent
from kschedfw.cluster.watch import ObjectStore

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Named)
R = TypeVar("R")


class AsyncCluster(Protocol):
    """A store of cluster objects with methods that are awaited. `ClusterBridge` makes a `Cluster` of it.

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


class ObjectCopy(ObjectStore):
    """The objects of a cluster, as `Cluster` reads them. Thread-safe.

    `take` passes it a change, `replace` all objects at once. Its own watchers get only the differences from the
    copy: a change that the copy has already isn't reported, and `old` is the copy's object.
    """

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
        # Another object of this name: the watch missed the deletion of the old one.
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


_SHORTEST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
"""Seconds before a watch that has ended is opened again; the pause doubles until a change comes."""


class ClusterBridge:
    """The `Cluster` of an `AsyncCluster`: for a scheduler in another thread than the event loop, as `AsyncScheduler`.

    Reads come from a copy in memory. It is complete once the bridge is entered, and lags behind the writes as a watch
    does. A write runs on the event loop while the calling thread waits for it. Events for users are recorded later, one
    after another. Watchers are called on a thread of the bridge, and the next change isn't asked for before they have
    returned; so a slow scheduler slows the watch down instead of filling the memory.

        async with ClusterBridge(site) as cluster:
            ...

    Args:
        cluster: what is read and written.
        timeout: seconds for the first answer of `watch`, for each write, and for the events that are left at the end.
        events_limit: how many events may wait to be recorded; further ones are dropped, and counted in `lost_events`.

    Raises:
        ClusterError: by a write: it took longer than `timeout`, the bridge isn't open, or the write was made on the
            event loop's own thread, which would wait for itself.
    """

    def __init__(self, cluster: AsyncCluster, *, timeout: float = 30.0, events_limit: int = 1000) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout: expected a positive number of seconds, found {timeout!r}")
        if events_limit < 1:
            raise ValueError(f"events_limit: expected at least 1, found {events_limit!r}")
        self._cluster = cluster
        self._timeout = timeout
        self._copy = ObjectCopy()
        self._events: asyncio.Queue[Callable[[], Coroutine[object, object, None]]] = asyncio.Queue(
            events_limit
        )
        self._lock = threading.Lock()
        """Guards the loop and the writes: a write that begins after the end would wait for ever."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._writes: set[Callable[[], bool]] = set()
        """A function for each pending write that cancels it."""
        self._tasks: Sequence[asyncio.Task[None]] = ()
        self._delivery: ThreadPoolExecutor | None = None
        self.lost_events = 0
        """Count of events that were dropped because too many were waiting."""

    async def __aenter__(self) -> Self:
        if self._delivery is not None:
            raise ClusterError("a bridge is entered once; make another one")
        loop = asyncio.get_running_loop()
        delivery = ThreadPoolExecutor(1, "kschedfw-watch")
        try:
            changes = await self._open(delivery)
        except BaseException:
            delivery.shutdown(wait=False)
            raise
        self._delivery = delivery
        with self._lock:
            self._loop, self._loop_thread = loop, threading.get_ident()
        self._tasks = (
            loop.create_task(self._follow(changes, delivery)),
            loop.create_task(self._record_events()),
        )
        # Let the task begin: an asynchronous generator that hasn't begun can't be closed.
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._delivery is not None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeout):
                    await self._events.join()
        finally:
            with self._lock:
                self._loop = None
                writes = tuple(self._writes)
            for cancel in writes:
                cancel()
            self._copy.close()
            # After the copy is closed: a change that is being taken reaches no watcher.
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            # At once, and then waited for elsewhere: the loop must not block, and a task that is cancelled here has
            # ended the thread all the same.
            self._delivery.shutdown(wait=False)
            await asyncio.to_thread(self._delivery.shutdown)
            if self.lost_events:
                _log.warning("%d events were not recorded: too many came at a time", self.lost_events)

    # --- reading, as `Cluster` ---

    def get(self, kind: type[T], key: str) -> T | None:
        """Answer as `Cluster.get`, from the copy."""
        return self._copy.get(kind, key)

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """Answer as `Cluster.list`, from the copy: in the order in which the objects came."""
        return self._copy.list(kind, namespace)

    def watch(self, handler: Handler) -> Callable[[], None]:
        """Call the handler as `Cluster.watch` does, for changes of the copy."""
        return self._copy.watch(handler)

    # --- writing, as `Cluster` ---

    def add(self, obj: T) -> T:
        """Add as `Cluster.add` does."""
        return self._wait(f"add {obj.key}", lambda: self._cluster.add(obj))

    def update(self, obj: T) -> T:
        """Update as `Cluster.update` does."""
        return self._wait(f"update {obj.key}", lambda: self._cluster.update(obj))

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind as `Cluster.bind` does."""
        self._wait(f"bind {pod.key}", lambda: self._cluster.bind(pod, node_name))

    def delete(self, obj: Named) -> None:
        """Delete as `Cluster.delete` does."""
        self._wait(f"delete {obj.key}", lambda: self._cluster.delete(obj))

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Patch as `Cluster.patch_pod_status` does."""
        self._wait(
            f"patch {pod.key}",
            lambda: self._cluster.patch_pod_status(
                pod, condition=condition, nominated_node_name=nominated_node_name
            ),
        )

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Record as `Cluster.record_event` does, later."""

        def record() -> Coroutine[object, object, None]:
            return self._cluster.record_event(regarding, type, reason, message, related)

        with self._lock:
            if self._loop is not None:
                # An asyncio.Queue isn't thread-safe, so the loop puts the event in.
                self._loop.call_soon_threadsafe(self._queue_event, record)

    # --- behind the scenes ---

    def _wait(self, what: str, write: Callable[[], Coroutine[object, object, R]]) -> R:
        """Run the write on the event loop, and wait for it."""
        with self._lock:
            if self._loop is None:
                raise ClusterError(f"{what}: the bridge isn't open")
            if threading.get_ident() == self._loop_thread:
                raise ClusterError(
                    f"{what}: on the event loop's own thread this would wait for itself; await the method of the "
                    f"{type(self._cluster).__name__} itself, or use asyncio.to_thread"
                )
            future = asyncio.run_coroutine_threadsafe(self._in_time(what, write), self._loop)
            self._writes.add(future.cancel)
        try:
            return future.result()
        except CancelledError:
            raise ClusterError(f"{what}: the bridge was closed; whether it was done isn't known") from None
        finally:
            with self._lock:
                self._writes.discard(future.cancel)

    async def _in_time(self, what: str, write: Callable[[], Coroutine[object, object, R]]) -> R:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await write()
        except TimeoutError:
            if not limit.expired():
                # The cluster's own error: this limit hasn't expired.
                raise
            raise ClusterError(
                f"{what}: no answer within {self._timeout:g} s; whether it was done isn't known"
            ) from None

    async def _open(self, delivery: ThreadPoolExecutor) -> AsyncIterator[WatchEvent]:
        """Open the watch and take its objects into the copy. Return the changes from then on."""
        async with asyncio.timeout(self._timeout):
            objects, changes = await self._cluster.watch()
        try:
            # On the thread of the watchers: many objects would hold up the event loop.
            await asyncio.get_running_loop().run_in_executor(delivery, self._copy.replace, objects)
        except BaseException:
            await _close(changes)
            raise
        return changes

    async def _follow(self, changes: AsyncIterator[WatchEvent], delivery: ThreadPoolExecutor) -> None:
        """Take the changes into the copy. A watch that ends is opened again, and nothing is missed by that."""
        loop = asyncio.get_running_loop()
        pause = _SHORTEST_PAUSE
        while True:
            try:
                async for event in changes:
                    await loop.run_in_executor(delivery, self._copy.take, event)
                    pause = _SHORTEST_PAUSE
                problem: object = "it ended"
            except Exception as error:
                problem = error
            finally:
                await _close(changes)
            while True:
                _log.warning("the watch is opened again in %g s: %s", pause, problem)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                try:
                    changes = await self._open(delivery)
                    break
                except Exception as error:
                    problem = error

    def _queue_event(self, record: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            self._events.put_nowait(record)
        except asyncio.QueueFull:
            self.lost_events += 1

    async def _record_events(self) -> None:
        while True:
            record = await self._events.get()
            try:
                async with asyncio.timeout(self._timeout):
                    await record()
            except Exception:
                # A lost event must cost neither an attempt nor the next event.
                _log.exception("an event couldn't be recorded")
            finally:
                self._events.task_done()


async def _close(changes: AsyncIterator[WatchEvent]) -> None:
    """Close an asynchronous generator; other iterators have nothing to close."""
    close = getattr(changes, "aclose", None)
    if close is not None:
        await close()
