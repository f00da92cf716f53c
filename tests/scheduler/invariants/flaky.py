"""A cluster with everything that goes wrong between a scheduler and an API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import TypeVar

import attrs

from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import ClusterError, InMemoryCluster, WatchEvent
from kschedfw.cluster.protocol import Handler

T = TypeVar("T", bound=Named)

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class RefusedError(ClusterError):
    """The cluster had a bad moment; nothing was changed."""


class FlakyCluster:
    """An `InMemoryCluster` (`truth`) whose answers get lost and whose watch events wait until they are let through.

    * `deliver` hands events over: mostly the oldest, sometimes a later one first, one twice, or one never.
      `relist` drops what is still on its way, as a watch does that begins anew.
    * `bind` succeeds, refuses, times out before anything was done, or does its work and then times out. Sometimes
      the watch is faster than the answer.
    * Bound pods are deleted as with a grace period: `deletion_timestamp` first; they go by `finish_termination`.

    While `calm`, nothing goes wrong. A handler that raises has its error noted in `handler_errors`.
    """

    def __init__(self, random: Random) -> None:
        self.truth = InMemoryCluster(events_limit=1000)
        self.calm = False
        self.in_transit: list[WatchEvent] = []
        self.handler_errors: list[Exception] = []
        self.bound: dict[str, list[str]] = {}
        """The nodes that a pod was bound to by the scheduler, by uid: one, if all is well."""
        self.confirmed: set[str] = set()
        """The uids of pods of which the scheduler was told that it has bound them."""
        self.bound_again: list[str] = []
        """Pods whose binding was asked for once more after the scheduler had been told that it was done."""
        self.lost_answers: set[str] = set()
        """The nodes to which pods were bound without the scheduler being told."""
        self._random = random
        self._handler: Handler = lambda event: None

    # The watch

    def watch(self, handler: Handler) -> Callable[[], None]:
        self._handler = handler
        return self.truth.watch(self.in_transit.append)

    def deliver(self) -> None:
        """Let an event through, or lose it."""
        events, random = self.in_transit, self._random
        if not events:
            return
        fate = 0.0 if self.calm else random.random()
        if fate < 0.75:
            self._hand_over(events.pop(0))
        elif fate < 0.86:
            self._hand_over(events.pop(random.randrange(len(events))))
        elif fate < 0.96:
            self._hand_over(random.choice(events))
        else:
            events.pop(random.randrange(len(events)))

    def deliver_all(self) -> None:
        for _ in range(len(self.in_transit)):
            self.deliver()

    def relist(self, resync: Callable[[], None]) -> None:
        """Begin a new watch with a list of all there is."""
        self.in_transit.clear()
        resync()

    def _hand_over(self, event: WatchEvent) -> None:
        try:
            self._handler(event)
        except Exception as error:
            self.handler_errors.append(error)

    # What a scheduler does

    def get(self, kind: type[T], key: str) -> T | None:
        return self.truth.get(kind, key)

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        return self.truth.list(kind, namespace)

    def add(self, obj: T) -> T:
        if not self.calm and self._random.random() < 0.1:
            raise RefusedError("the API server is overloaded")
        return self.truth.add(obj)

    def update(self, obj: T) -> T:
        fate = 1.0 if self.calm else self._random.random()
        if fate < 0.08:
            raise RefusedError("the API server is overloaded")
        if fate < 0.14:
            raise TimeoutError("no connection")
        stored = self.truth.update(obj)
        if fate < 0.2:
            raise TimeoutError("no answer")
        if fate < 0.3:
            self.deliver_all()
        return stored

    def bind(self, pod: Pod, node_name: str) -> None:
        present = self.truth.get(Pod, pod.key)
        if pod.uid in self.confirmed and present is not None and present.uid == pod.uid:
            self.bound_again.append(pod.key)
        fate = 1.0 if self.calm else self._random.random()
        if fate < 0.08:
            raise RefusedError("the API server is overloaded")
        if fate < 0.14:
            raise TimeoutError("no connection")
        self.truth.bind(pod, node_name)
        self.bound.setdefault(pod.uid, []).append(node_name)
        if fate < 0.2:
            self.lost_answers.add(node_name)
            raise TimeoutError("no answer")
        if fate < 0.3:
            self.deliver_all()
        self.confirmed.add(pod.uid)

    def delete(self, obj: Named) -> None:
        if not self.calm and self._random.random() < 0.03:
            raise RefusedError("the API server is overloaded")
        self.delete_gracefully(obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        fate = 1.0 if self.calm else self._random.random()
        if fate < 0.02:
            raise RefusedError("the API server is overloaded")
        if fate < 0.04:
            raise TimeoutError("no connection")
        self.truth.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        self.truth.record_event(regarding, type, reason, message, related)

    # What others do

    def delete_gracefully(self, obj: Named) -> None:
        """Delete the object; a bound pod only begins to terminate."""
        present = self.truth.get(type(obj), obj.key)
        if isinstance(present, Pod) and present.uid == obj.uid and present.node_name:
            if not present.is_terminating:
                metadata = attrs.evolve(present.metadata, deletion_timestamp=LONG_AGO)
                self.truth.update(attrs.evolve(present, metadata=metadata))
            return
        self.truth.delete(obj)

    def finish_termination(self, pod: Pod) -> None:
        """The kubelet has ended the pod."""
        self.truth.delete(pod)
