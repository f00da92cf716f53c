"""Checks that a watch tells the whole state of the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import attrs

from kschedfw import FrozenDict, Pod
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw.testing.cluster_contract.subject import (
    ClusterSubject,
    eventually,
    gone,
    pod_in,
    present,
    remedy,
)

_THREADS = 4
_PODS = 6


class Watcher:
    """A handler that records the pods of a namespace, and violations of the promises of `Cluster.watch`."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._busy = threading.Lock()
        self.events: list[WatchEvent] = []
        self.known: dict[str, Pod] = {}
        self.broken: list[str] = []

    def __call__(self, event: WatchEvent) -> None:
        # Not blocking, or a second call at the same time would only wait, and nobody would see it.
        if not self._busy.acquire(blocking=False):
            self.broken.append("it was called while it was being called")
            return
        try:
            self._take(event)
        finally:
            self._busy.release()

    def _take(self, event: WatchEvent) -> None:
        pod = event.object
        if not isinstance(pod, Pod) or pod.namespace != self._namespace:
            return
        self.events.append(event)
        before = self.known.get(pod.name)
        if (event.type is EventType.ADDED) is not (before is None):
            self.broken.append(f"{event.type} of {pod.name}, of which was known: {before}")
        if event.type is EventType.MODIFIED:
            if event.old != before:
                self.broken.append(f"{pod.name} was {before}, and not {event.old}")
            if before is not None and before == pod:
                self.broken.append(f"the same state of {pod.name} came twice")
        elif event.old is not None:
            self.broken.append(f"{event.type} of {pod.name} with an old state")
        if event.type is EventType.DELETED:
            self.known.pop(pod.name, None)
        else:
            self.known[pod.name] = pod

    def sees(self, cluster: Cluster) -> bool:
        """Tell whether the recorded pods are those that the cluster lists."""
        return sorted(self.known.values(), key=_name) == sorted(cluster.list(Pod, self._namespace), key=_name)


class WatchChecks(ClusterSubject):
    """Checks that a handler is called for every object and every change, once and in order."""

    @remedy("`watch` calls the handler with ADDED for each object before it returns.")
    def test_what_is_there_is_told_before_watch_returns(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        watcher = Watcher(namespace)
        end = cluster.watch(watcher)
        end()
        assert [(event.type, event.object) for event in watcher.events] == [(EventType.ADDED, pod)]

    @remedy(
        "`watch` tells an object's changes in order: MODIFIED with the state before as `old`, DELETED with the last."
    )
    def test_changes_are_told_in_their_order(self, cluster: Cluster, namespace: str) -> None:
        watcher = Watcher(namespace)
        end = cluster.watch(watcher)
        pod = cluster.add(pod_in(namespace))
        changed = cluster.update(_numbered(present(cluster, pod), 1))
        cluster.delete(present(cluster, changed))
        eventually(lambda: watcher.events and watcher.events[-1].type is EventType.DELETED)
        end()
        first, *changes, last = watcher.events
        assert first == WatchEvent(EventType.ADDED, pod)
        # Before its deletion a pod may get a deletion timestamp, which is a change of its own.
        assert changes[0] == WatchEvent(EventType.MODIFIED, changed, pod)
        assert last.object.uid == pod.uid
        assert last.object.labels == changed.labels
        assert not watcher.broken

    @remedy("`update` to an equal object keeps its resource version and tells no handler.")
    def test_an_update_that_changes_nothing_is_not_told(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        watcher = Watcher(namespace)
        end = cluster.watch(watcher)
        same = cluster.update(pod)
        assert same.metadata.resource_version == pod.metadata.resource_version
        after = cluster.update(_numbered(pod, 1))
        eventually(lambda: watcher.known.get("web") == after)
        end()
        assert len(watcher.events) == 2

    @remedy("The function that `watch` returns removes the handler; no call begins after it has returned.")
    def test_after_its_end_nothing_is_told(self, cluster: Cluster, namespace: str) -> None:
        stopped, other = Watcher(namespace), Watcher(namespace)
        cluster.watch(stopped)()
        end = cluster.watch(other)
        cluster.add(pod_in(namespace))
        eventually(lambda: other.events)
        end()
        assert stopped.events == []

    @remedy("Catch and log what a handler raises, then go on with the next change.")
    def test_a_handler_that_raises_is_told_the_next_change(self, cluster: Cluster, namespace: str) -> None:
        watcher = Watcher(namespace)

        def raising(event: WatchEvent) -> None:
            watcher(event)
            raise ValueError("a handler's mistake, made on purpose")

        end = cluster.watch(raising)
        for name in "ab":
            present(cluster, cluster.add(pod_in(namespace, name)))
        eventually(lambda: set(watcher.known) == {"a", "b"})
        end()
        assert not watcher.broken

    @remedy(
        "Hold no lock that `get` and `add` need while a handler runs; queue the changes that a handler makes."
    )
    def test_a_handler_may_read_and_write(self, cluster: Cluster, namespace: str) -> None:
        watcher = Watcher(namespace)

        def following(event: WatchEvent) -> None:
            watcher(event)
            pod = event.object
            if isinstance(pod, Pod) and pod.namespace == namespace and event.type is EventType.ADDED:
                assert cluster.get(Pod, pod.key) is not None
                if pod.name == "first":
                    cluster.add(pod_in(namespace, "second"))

        end = cluster.watch(following)
        cluster.add(pod_in(namespace, "first"))
        eventually(lambda: set(watcher.known) == {"first", "second"})
        end()
        assert not watcher.broken

    @remedy(
        "Tell changes from one queue: no handler is called by two threads at a time, and no change is left out."
    )
    def test_many_writers_and_watchers(self, cluster: Cluster, namespace: str) -> None:
        watchers = [Watcher(namespace) for _ in range(3)]
        ends = [cluster.watch(watcher) for watcher in watchers[:2]]

        def write(thread: int) -> None:
            for number in range(_PODS):
                pod = cluster.add(pod_in(namespace, f"pod-{thread}-{number}"))
                pod = cluster.update(_numbered(pod, 1))
                if number % 2:
                    cluster.delete(pod)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(_THREADS)]
        for thread in threads:
            thread.start()
        ends.append(cluster.watch(watchers[2]))
        for thread in threads:
            thread.join()
        expected = {f"pod-{thread}-{number}" for thread in range(_THREADS) for number in range(0, _PODS, 2)}

        def all_know() -> bool:
            # Also the last update: a cluster that reads from a copy may lag behind its writes, as watchers do.
            return all(
                set(each.known) == expected
                and all(pod.labels == {"number": "1"} for pod in each.known.values())
                and each.sees(cluster)
                for each in watchers
            )

        eventually(all_know)
        _end(ends)
        assert [each.broken for each in watchers] == [[], [], []]

    @remedy("Give an object that is added again a new uid; tell DELETED of the old one before ADDED.")
    def test_an_object_that_comes_back_is_another_one(self, cluster: Cluster, namespace: str) -> None:
        watcher = Watcher(namespace)
        end = cluster.watch(watcher)
        first = present(cluster, cluster.add(pod_in(namespace)))
        cluster.delete(first)
        gone(cluster, first)
        second = cluster.add(pod_in(namespace))
        eventually(lambda: watcher.known.get("web") == second)
        end()
        assert not watcher.broken
        told = [event.type for event in watcher.events if event.type is not EventType.MODIFIED]
        assert told == [EventType.ADDED, EventType.DELETED, EventType.ADDED]


def _end(ends: Sequence[Callable[[], None]]) -> None:
    for end in ends:
        end()


def _numbered(pod: Pod, number: int) -> Pod:
    labels = FrozenDict({"number": str(number)})
    return pod.with_metadata(attrs.evolve(pod.metadata, labels=labels))


def _name(pod: Pod) -> str:
    return pod.name
