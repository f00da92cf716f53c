"""Pods that wait for an event (kube-scheduler `unschedulableEntities`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.scheduler.queue.stillness import end_of_stage, rest

Rejector = tuple[str, str]
"""A profile's name and a plugin's; the plugin is empty for a pod that no plugin has rejected."""


class UnschedulablePool:
    """Rejected and gated pods, indexed by the plugins that rejected them: an event costs nothing for other pods.

    A pod is overdue after `timeout` seconds without an attempt, or at a time that a plugin has set.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._infos: dict[str, QueuedPodInfo] = {}
        self._rejectors: dict[str, tuple[Rejector, ...]] = {}
        self._by_rejector: dict[Rejector, dict[str, QueuedPodInfo]] = {}
        self._gated: set[str] = set()
        # No pod is overdue before this time. It is a lower bound: it isn't raised when pods leave.
        self._none_due_until = math.inf

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, uid: str) -> bool:
        return uid in self._infos

    @property
    def gated_count(self) -> int:
        return len(self._gated)

    def get(self, uid: str) -> QueuedPodInfo | None:
        return self._infos.get(uid)

    def ordered(self) -> Sequence[QueuedPodInfo]:
        """Return all pods in the order in which they entered the queue."""
        return sorted(self._infos.values(), key=_sequence)

    def put(self, info: QueuedPodInfo) -> None:
        """Add the pod, or reindex it after a change."""
        uid, profile = info.pod.uid, info.pod.spec.scheduler_name
        self.remove(uid)
        self._infos[uid] = info
        # No event concerns a pod whose fellow is gated: each member of a gang of 1,000 would have all others looked at.
        rejectors = () if info.gated_by_fellow else info.rejector_plugins or {""}
        self._rejectors[uid] = tuple((profile, plugin) for plugin in rejectors)
        for rejector in self._rejectors[uid]:
            self._by_rejector.setdefault(rejector, {})[uid] = info
        if info.gated:
            self._gated.add(uid)
        self._none_due_until = min(self._none_due_until, self._last_due(info))

    def remove(self, uid: str) -> QueuedPodInfo | None:
        info = self._infos.pop(uid, None)
        if info is None:
            return None
        for rejector in self._rejectors.pop(uid):
            infos = self._by_rejector[rejector]
            del infos[uid]
            if not infos:
                del self._by_rejector[rejector]
        self._gated.discard(uid)
        return info

    def rejected_by(self, concerned: Callable[[Rejector], bool]) -> Sequence[QueuedPodInfo]:
        """Return the pods rejected by any of the `concerned` rejectors, in the order of their arrival in the queue."""
        if not self._infos:
            return ()
        found: dict[str, QueuedPodInfo] = {}
        for rejector, infos in self._by_rejector.items():
            if concerned(rejector):
                found.update(infos)
        # Sorted, so that the order of attempts doesn't follow from that of plugins. In kube-scheduler it is a
        # Go map's.
        return sorted(found.values(), key=_sequence)

    def overdue(self, now: float) -> Sequence[QueuedPodInfo]:
        """Return the pods that have waited for an event for longer than the timeout."""
        if now <= self._none_due_until:
            return ()
        # Later than the timeout, not at it, as in kube-scheduler.
        overdue = [info for info in self.ordered() if now > self._last_due(info)]
        self._none_due_until = self._first_due(
            info for info in self._infos.values() if now <= self._last_due(info)
        )
        return overdue

    def next_due(self) -> float:
        """Return a time before which no pod is overdue; infinity if there are no pods."""
        return math.nextafter(self._none_due_until, math.inf) if self._infos else math.inf

    def rest(self, now: float) -> Iterator[Sequence[QueuedPodInfo]]:
        """Catch up on the flushes before `now`, none of which would have changed anything.

        Yield, stage by stage (`end_of_stage`), the pods that would have been tried, in no particular order.
        """
        while (due := self.next_due()) < now:
            until = min(now, end_of_stage(due, self._timeout))
            yield [info for info in self._infos.values() if rest(info, self._timeout, until)]
            self._none_due_until = self._first_due(self._infos.values())

    def retry_times(self) -> dict[str, float]:
        """Return the times at which plugins want pods tried again, by uid."""
        if math.isinf(self._none_due_until):
            return {}
        return {uid: info.retry_at for uid, info in self._infos.items() if info.retry_at is not None}

    def _last_due(self, info: QueuedPodInfo) -> float:
        """Return the time after which the pod is overdue."""
        since = info.timestamp if info.flush_timestamp is None else max(info.timestamp, info.flush_timestamp)
        # `overdue` takes pods later than this time; one step earlier makes `retry_at` itself count.
        timeout = since + self._timeout
        return timeout if info.retry_at is None else min(timeout, math.nextafter(info.retry_at, -math.inf))

    def _first_due(self, infos: Iterable[QueuedPodInfo]) -> float:
        return min(map(self._last_due, infos), default=math.inf)


def _sequence(info: QueuedPodInfo) -> int:
    return info.sequence
