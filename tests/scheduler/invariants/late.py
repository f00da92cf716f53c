"""A cluster between whose answers and whose watch events time passes, as behind an API server.

A write is answered by the server (`truth`) as it is now. What the scheduler reads is its informers' store, which only
events change; and an event is in the store before its handler has run.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeVar, cast

from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.cluster.protocol import Handler
from tests.scheduler.invariants.flaky import FlakyCluster

T = TypeVar("T", bound=Named)


class LateCluster(FlakyCluster):
    """A `FlakyCluster` that loses nothing: every event comes, each in its time.

    * The events of an object come in their order. Those of different objects come in any order, or where
      `ordered`, in the order of their kind, as a watch delivers them. Kinds never wait for each other.
    * `deliver` brings an event into the store, and has it handled or lets it wait. Around each write some of this
      happens, too, before or after the server has acted, unless the cluster is `prompt`.
    * `relist` brings the store to the present by a list of each kind, so changes in between are never seen.
    * A bound pod that is deleted terminates first or is gone at once, as chance has it (`graceful`).
    """

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.calm = True
        self.prompt = False
        self.ordered = False
        self.graceful = 0.5
        """The probability that a bound pod that is deleted terminates first."""
        self._store: defaultdict[type[Named], dict[str, Named]] = defaultdict(dict)
        self._on_the_way: dict[tuple[type[Named], str], deque[WatchEvent]] = {}
        """By kind and, unless `ordered`, the object's key."""
        self._unhandled: deque[WatchEvent] = deque()
        self._is_handling = False

    # The watch

    def watch(self, handler: Handler) -> Callable[[], None]:
        self._handler = handler
        end = self.truth.watch(self._happened)
        # A scheduler begins with what was listed.
        self.deliver_all()
        return end

    @property
    def is_up_to_date(self) -> bool:
        return not self._on_the_way and not self._unhandled

    def deliver(self) -> None:
        if self._on_the_way:
            self._store_next()
        if self._random.random() < 0.8:
            self.handle_all()

    def deliver_all(self) -> None:
        while self._on_the_way:
            self._store_next()
        self.handle_all()

    def handle_all(self) -> None:
        """Have the events handled that are in the store, unless a handler runs: they have one thread."""
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._unhandled:
                self._hand_over(self._unhandled.popleft())
        finally:
            self._is_handling = False

    def relist(self, resync: Callable[[], None]) -> None:  # the store tells of all differences
        for kind in tuple(self._store):
            self.relist_kind(kind)
        self.handle_all()

    def relist_any(self) -> None:
        """A watch begins anew, while those of other kinds go on."""
        self.relist_kind(self._random.choice(tuple(self._store)))

    def relist_kind(self, kind: type[Named]) -> None:
        for key in [key for key in self._on_the_way if key[0] is kind]:
            del self._on_the_way[key]
        known, present = self._store[kind], {obj.key: obj for obj in self.truth.list(kind)}
        for obj in tuple(known.values()):
            if obj.key not in present or present[obj.key].uid != obj.uid:
                self._put(EventType.DELETED, obj)
        for obj in sorted(present.values(), key=lambda obj: int(obj.metadata.resource_version)):
            if known.get(obj.key) != obj:
                self._put(EventType.MODIFIED if obj.key in known else EventType.ADDED, obj)

    def _happened(self, event: WatchEvent) -> None:
        kind = type(event.object)
        key = kind, "" if self.ordered else event.object.key
        self._store[kind]  # so that it is listed
        self._on_the_way.setdefault(key, deque()).append(event)

    def _store_next(self) -> None:
        key = self._random.choice(tuple(self._on_the_way))
        events = self._on_the_way[key]
        event = events.popleft()
        self._put(event.type, event.object)
        if not events:
            del self._on_the_way[key]

    def _put(self, kind_of_event: EventType, obj: Named) -> None:
        known = self._store[type(obj)]
        old = known.pop(obj.key, None)
        if kind_of_event is not EventType.DELETED:
            known[obj.key] = obj
        self._unhandled.append(
            WatchEvent(kind_of_event, obj, old if kind_of_event is EventType.MODIFIED else None)
        )

    # What a scheduler does

    def get(self, kind: type[T], key: str) -> T | None:
        return cast("T | None", self._store[kind].get(key))

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        found = cast("Sequence[T]", tuple(self._store[kind].values()))
        return found if namespace is None else [obj for obj in found if obj.namespace == namespace]

    def add(self, obj: T) -> T:
        with self._meanwhile():
            return super().add(obj)

    def update(self, obj: T) -> T:
        with self._meanwhile():
            return super().update(obj)

    def bind(self, pod: Pod, node_name: str) -> None:
        with self._meanwhile():
            super().bind(pod, node_name)

    def delete(self, obj: Named) -> None:
        with self._meanwhile():
            super().delete(obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        with self._meanwhile():
            super().patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)

    @contextmanager
    def _meanwhile(self) -> Iterator[None]:
        self._pass()
        try:
            yield
        finally:
            self._pass()

    def _pass(self) -> None:
        """Let some events through while the scheduler is busy or waits for an answer."""
        if not (self.prompt or self._is_handling):
            for _ in range(self._random.choice([0, 0, 0, 1, 2, 9])):
                self.deliver()

    def delete_gracefully(self, obj: Named) -> None:
        if self._random.random() < self.graceful:
            super().delete_gracefully(obj)
        else:
            self.truth.delete(obj)
