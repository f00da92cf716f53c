"""ClusterBridge: the contract of clusters, and what happens when the asynchronous side is slow, breaks or ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator

import attrs
import pytest

from kschedfw import InMemoryCluster, Node, Pod, make_pod
from kschedfw.aio import ClusterBridge, bridge
from kschedfw.api import Named
from kschedfw.cluster import Cluster, ClusterError, EventType, WatchEvent
from kschedfw.testing.cluster_contract import ClusterContract
from kschedfw.testing.waiting import PATIENCE
from tests.aio.site import Site, nodes, until


class TestContract(ClusterContract):
    @pytest.fixture
    def cluster(self) -> Iterator[Cluster]:
        """A bridge whose event loop runs on another thread than the checks."""
        made: list[Cluster] = []
        is_made, is_over = threading.Event(), asyncio.Event()
        loops: list[asyncio.AbstractEventLoop] = []

        async def serve() -> None:
            loops.append(asyncio.get_running_loop())
            async with ClusterBridge(Site()) as cluster:
                made.append(cluster)
                is_made.set()
                await is_over.wait()

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        assert is_made.wait(PATIENCE)
        yield made[0]
        loops[0].call_soon_threadsafe(is_over.set)
        thread.join()


def run(test: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), PATIENCE), debug=True)


def told_by_bridge(caplog: pytest.LogCaptureFixture) -> list[str]:
    # asyncio warns of steps that take long, too.
    return [record.getMessage() for record in caplog.records if record.name == bridge.__name__]


POD = make_pod("web").uid("web").build()


def test_a_watch_that_breaks_is_opened_again_and_tells_what_changed_meanwhile(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "_SHORTEST_PAUSE", 0.01)

    async def test() -> None:
        site = Site([*nodes(3)])
        async with ClusterBridge(site) as cluster:
            told: list[str] = []

            def tell(event: WatchEvent) -> None:
                old = "" if event.old is None else f" instead of {event.old.labels.get('a')}"
                told.append(f"{event.type} {event.object.name} {event.object.labels.get('a')}{old}")

            end = cluster.watch(tell)
            told.clear()
            site.refusals = [OSError("connection refused"), TimeoutError("too slow")]
            site.lose_connection(OSError("connection reset"))
            await until(lambda: site.followers == 0)
            first, second, _ = site.store.list(Node)
            site.store.delete(first)
            site.store.update(labelled(second, "b"))
            site.store.add(nodes(4)[3])
            await until(lambda: len(told) == 3)
            assert told == ["DELETED n0 None", "MODIFIED n1 b instead of None", "ADDED n3 None"]
            assert [node.name for node in cluster.list(Node)] == ["n1", "n2", "n3"]
            assert site.watches == 4
            site.lose_connection()  # an end without an error
            await until(lambda: site.watches == 5 and site.followers == 1)
            site.store.delete(site.store.list(Node)[0])
            await until(lambda: told[3:] == ["DELETED n1 b"])
            end()
        assert site.followers == 0

    with caplog.at_level(logging.WARNING):
        run(test)
    assert told_by_bridge(caplog) == [
        "the watch is opened again in 0.01 s: connection reset",
        "the watch is opened again in 0.02 s: connection refused",
        "the watch is opened again in 0.04 s: too slow",
        "the watch is opened again in 0.08 s: it ended",
    ]


class Closable:
    """Changes of which none ever comes; tells whether it was closed."""

    is_closed = False

    def __aiter__(self) -> Closable:
        return self

    async def __anext__(self) -> WatchEvent:
        await asyncio.Event().wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True


def unreadable() -> Iterator[Named]:
    yield from nodes(1)
    raise ValueError("no object")


class Unreadable(Site):
    """A site whose second watch tells objects that can't be read."""

    def __init__(self) -> None:
        super().__init__(nodes(1))
        self.changes = Closable()

    async def watch(self) -> tuple[Iterable[Named], AsyncIterator[WatchEvent]]:
        objects, changes = await super().watch()
        return (unreadable(), self.changes) if self.watches == 2 else (objects, changes)


def test_a_watch_that_was_opened_again_in_vain_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "_SHORTEST_PAUSE", 0.01)

    async def test() -> None:
        site = Unreadable()
        async with ClusterBridge(site) as cluster:
            site.lose_connection()
            await until(lambda: site.watches == 3)
            assert site.changes.is_closed
            assert [node.name for node in cluster.list(Node)] == ["n0"]

    run(test)


def labelled(node: Node, value: str) -> Node:
    return node.with_metadata(attrs.evolve(node.metadata, labels={"a": value}))


def test_a_change_told_twice_or_too_early_is_told_once() -> None:
    async def test() -> None:
        async with ClusterBridge(Site(nodes(1))) as cluster:
            told: list[tuple[EventType, str, str]] = []
            end = cluster.watch(lambda event: told.append((event.type, event.object.name, event.object.uid)))
            node = cluster.list(Node)[0]
            other = node.with_metadata(attrs.evolve(node.metadata, uid="other"))
            changes: tuple[tuple[EventType, Named], ...] = (
                (EventType.ADDED, node),
                (EventType.DELETED, POD),
                (EventType.MODIFIED, POD),
                (EventType.ADDED, other),
            )
            for change, obj in changes:
                cluster._copy.take(WatchEvent(change, obj))
            end()
            assert told == [
                (EventType.ADDED, "n0", node.uid),
                (EventType.ADDED, "web", "web"),
                (EventType.DELETED, "n0", node.uid),
                (EventType.ADDED, "n0", "other"),
            ]

    run(test)


def test_a_slow_watcher_slows_the_watch_down() -> None:
    async def test() -> None:
        site = Site()
        may = threading.Event()
        async with ClusterBridge(site) as cluster:

            def wait(_: WatchEvent) -> None:
                assert may.wait(PATIENCE)

            end = cluster.watch(wait)
            for node in nodes(100):
                site.store.add(node)
            await asyncio.sleep(0.05)
            assert site.asked == 1
            may.set()
            await until(lambda: len(cluster.list(Node)) == 100)
            end()

    run(test)


def test_a_write_that_takes_too_long_ends() -> None:
    async def test() -> None:
        site = Site([*nodes(1), POD])
        site.may_bind.clear()
        async with ClusterBridge(site, timeout=0.05) as cluster:
            with pytest.raises(ClusterError, match=r"bind default/web: no answer within 0\.05 s; whether it"):
                await asyncio.to_thread(cluster.bind, POD, "n0")

    run(test)


def test_a_timeout_of_the_cluster_itself_stays_one() -> None:
    class TimesOut(Site):
        async def delete(self, obj: object) -> None:
            raise TimeoutError("of the database")

    async def test() -> None:
        async with ClusterBridge(TimesOut()) as cluster:
            with pytest.raises(TimeoutError, match="of the database"):
                await asyncio.to_thread(cluster.delete, POD)

    run(test)


def test_a_write_on_the_loops_own_thread_is_refused_and_one_of_a_watcher_is_not() -> None:
    async def test() -> None:
        site = Site([POD])
        async with ClusterBridge(site) as cluster:
            with pytest.raises(
                ClusterError, match=r"delete default/web: on the event loop's own thread .* Site"
            ):
                cluster.delete(POD)

            def bind(event: WatchEvent) -> None:
                if isinstance(event.object, Node):
                    cluster.bind(POD, event.object.name)

            end = cluster.watch(bind)
            site.store.add(nodes(1)[0])
            await until(lambda: site.store.list(Pod)[0].node_name == "n0")
            end()

    run(test)


def test_a_write_that_waits_when_the_bridge_is_closed_ends_and_later_ones_are_refused() -> None:
    async def test() -> None:
        site = Site([*nodes(1), POD])
        site.may_bind.clear()
        async with ClusterBridge(site) as cluster:
            write = asyncio.create_task(asyncio.to_thread(cluster.bind, POD, "n0"))
            await site.binding.wait()
        with pytest.raises(ClusterError, match="bind default/web: the bridge was closed; whether it"):
            await write
        with pytest.raises(ClusterError, match="delete default/web: the bridge isn't open"):
            await asyncio.to_thread(cluster.delete, POD)
        cluster.record_event(POD, "Normal", "Late", "is ignored")
        with pytest.raises(ClusterError, match="a bridge is entered once"):
            await cluster.__aenter__()

    run(test)


def test_events_are_recorded_later_and_too_many_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        site = Site([POD])
        site.may_record.clear()
        async with ClusterBridge(site, events_limit=3) as cluster:
            for reason in ("Broken", "First", "Second", "Third", "Fourth"):
                cluster.record_event(POD, "Normal", reason, "text")
            await until(lambda: cluster.lost_events == 2)
            assert len(site.store.events) == 0
            site.may_record.set()
        assert [event.reason for event in site.store.events] == ["First", "Second"]

    run(test)
    assert told_by_bridge(caplog) == [
        "an event couldn't be recorded",
        "2 events were not recorded: too many came at a time",
    ]


def test_a_first_watch_that_fails_is_the_callers_to_see() -> None:
    async def test() -> None:
        site = Site()
        site.refusals = [OSError("connection refused")]
        with pytest.raises(OSError, match="connection refused"):
            await ClusterBridge(site).__aenter__()

    run(test)
    with pytest.raises(ValueError, match="timeout: expected a positive number of seconds, found 0"):
        ClusterBridge(Site(), timeout=0)
    with pytest.raises(ValueError, match="events_limit: expected at least 1, found 0"):
        ClusterBridge(Site(), events_limit=0)


def test_a_bridge_has_all_methods_of_a_cluster() -> None:
    cluster: Cluster = ClusterBridge(Site())
    assert isinstance(cluster, ClusterBridge)
    assert {name for name in dir(Cluster) if not name.startswith("_")} <= set(dir(InMemoryCluster))
