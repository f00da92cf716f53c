"""An `AsyncCluster` in memory, which tests slow down, break and hold up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from kschedfw import InMemoryCluster, Node, make_node
from kschedfw.api import Named, PodCondition
from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster, ClusterError, T, WatchEvent


def nodes(count: int, cpu: int = 4) -> list[Node]:
    return [make_node(f"n{number}").capacity(cpu=cpu, memory="8Gi").build() for number in range(count)]


class Site:
    """Stores objects in an `InMemoryCluster`, and is slow if told to."""

    def __init__(self, objects: Iterable[Named] = ()) -> None:
        self.store = InMemoryCluster(objects)
        self.watches = 0
        self.asked = 0
        """How many changes were asked for."""
        self.writing = 0
        self.most_writing = 0
        self.may_bind = asyncio.Event()
        self.may_bind.set()
        self.may_record = asyncio.Event()
        self.may_record.set()
        self.binding = asyncio.Event()
        self.refusals: list[Exception] = []
        """Raised by `watch`, one by one."""
        self._followers: list[asyncio.Queue[WatchEvent | Exception | None]] = []

    async def watch(self) -> tuple[Iterable[Named], AsyncIterator[WatchEvent]]:
        self.watches += 1
        if self.refusals:
            raise self.refusals.pop(0)
        changes: asyncio.Queue[WatchEvent | Exception | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        objects: list[Named] = []
        is_here = False

        def tell(event: WatchEvent) -> None:
            if is_here:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(changes.put_nowait, event)
            else:
                objects.append(event.object)

        end = self.store.watch(tell)
        is_here = True
        self._followers.append(changes)
        return objects, self._changes(changes, end)

    async def _changes(
        self, changes: asyncio.Queue[WatchEvent | Exception | None], end: object
    ) -> AsyncIterator[WatchEvent]:
        try:
            while True:
                self.asked += 1
                change = await changes.get()
                if change is None:
                    return
                if isinstance(change, Exception):
                    raise change
                yield change
        finally:
            assert callable(end)
            end()
            self._followers.remove(changes)

    @property
    def followers(self) -> int:
        return len(self._followers)

    def lose_connection(self, error: Exception | None = None) -> None:
        for changes in self._followers:
            changes.put_nowait(error)

    async def add(self, obj: T) -> T:
        return self.store.add(obj)

    async def update(self, obj: T) -> T:
        return self.store.update(obj)

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.writing += 1
        self.most_writing = max(self.writing, self.most_writing)
        self.binding.set()
        try:
            await self.may_bind.wait()
            self.store.bind(pod, node_name)
        finally:
            self.writing -= 1

    async def delete(self, obj: Named) -> None:
        self.store.delete(obj)

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        self.store.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)

    async def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        await self.may_record.wait()
        if reason == "Broken":
            raise ClusterError("no events today")
        self.store.record_event(regarding, type, reason, message, related)


async def until(condition: object, cluster: Cluster | None = None) -> None:
    """Wait until the condition holds, at most 20 s."""
    assert callable(condition)
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)
