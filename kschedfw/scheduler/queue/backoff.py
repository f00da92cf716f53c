"""Pods that wait before they are tried again (kube-scheduler `backoffQueue`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kschedfw.api import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.scheduler.queue.heap import KeyedHeap

WINDOW = 1.0
"""The length of a window in seconds. Pods whose backoff ends within the same window are ordered by priority
(KEP-5142)."""

_MAX_DOUBLINGS = 1000  # 2 ** 1024 overflows a float


@frozen
class BackoffPolicy:
    """The lengths of backoffs: `initial` seconds after the first failure, doubled by each more, up to `maximum`.

    Rejections are counted since the pod was added, errors since the last attempt that ended without one. A
    maximum of 0 switches backoff off. With `windows` (SchedulerPopFromBackoffQ) the end of a backoff
    is moved to the end of its `WINDOW`, and pods that back off are popped if none is active.

    `size_of` returns the number of pods that are scheduled together with a pod, itself included. The longest backoff is
    `maximum` times its square root (v1.37, where a group backs off as a whole); without it each pod counts alone.
    """

    initial: float = 1.0
    maximum: float = 10.0
    windows: bool = True
    size_of: Callable[[Pod], int] | None = None

    def duration(self, failures: int, size: int = 1) -> float:
        """Return the seconds of backoff of a group of this size, or a single pod, after this many failures."""
        if failures == 0:
            return 0.0
        longest = self.maximum * math.sqrt(max(size, 1))
        return min(longest, self.initial * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))

    def expiration(self, info: QueuedPodInfo) -> float:
        """Return the end of the pod's backoff, or the start of the window that it falls into. Store it in the info."""
        failures = info.consecutive_errors_count or info.unschedulable_count
        if not self.maximum or not failures:
            return -math.inf
        # Computed once: the order in the heap must not change while the pod is there.
        if info.backoff_expiration is None:
            size = 1 if self.size_of is None else self.size_of(info.pod)
            info.backoff_expiration = self._align(info.timestamp + self.duration(failures, size))
        return info.backoff_expiration

    def is_backing_off(self, info: QueuedPodInfo, now: float) -> bool:
        # Until the window is over, not only the backoff: all pods of a window become ready at once, and the one with
        # the highest priority goes first.
        return self.expiration(info) >= self._align(now)

    def release_time(self, info: QueuedPodInfo) -> float:
        """Return the earliest time at which the pod no longer backs off."""
        expiration = self.expiration(info)
        return expiration + WINDOW if self.windows else math.nextafter(expiration, math.inf)

    def _align(self, time: float) -> float:
        return math.floor(time / WINDOW) * WINDOW if self.windows else time


class BackoffQueue:
    """Pods that back off, ordered by the end of their backoff; those after an error are kept separately.

    Rejected pods may be tried early when the scheduler is idle, since their backoff only saves time for other pods.
    Pods after an error aren't, since their backoff protects a system that fails.
    """

    def __init__(self, policy: BackoffPolicy, before: Callable[[QueuedPodInfo, QueuedPodInfo], bool]) -> None:
        def ends_first(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
            return (policy.expiration(first), first.sequence) < (policy.expiration(second), second.sequence)

        def goes_first(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
            one, other = policy.expiration(first), policy.expiration(second)
            return one < other if one != other else before(first, second)

        self._policy = policy
        self._refused = KeyedHeap[QueuedPodInfo](goes_first if policy.windows else ends_first)
        self._failed = KeyedHeap[QueuedPodInfo](ends_first)

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def __contains__(self, uid: str) -> bool:
        return uid in self._refused or uid in self._failed

    def get(self, uid: str) -> QueuedPodInfo | None:
        return self._refused.get(uid) or self._failed.get(uid)

    def ordered(self) -> Sequence[QueuedPodInfo]:
        return [*self._refused.ordered(), *self._failed.ordered()]

    def add(self, info: QueuedPodInfo) -> None:
        # The last attempt decides: if a gate holds a pod back after an error, the pod still counts as failed.
        heap = self._failed if info.consecutive_errors_count else self._refused
        heap.push(info.pod.uid, info)

    def update(self, info: QueuedPodInfo) -> None:
        """Reorder a pod of this queue that was changed."""
        # By where the pod is: a change of the pod doesn't move it to the other heap.
        heap = self._refused if info.pod.uid in self._refused else self._failed
        heap.push(info.pod.uid, info)

    def remove(self, uid: str) -> QueuedPodInfo | None:
        return self._refused.remove(uid) or self._failed.remove(uid)

    def pop_completed(self, now: float) -> Sequence[QueuedPodInfo]:
        """Remove the pods whose backoff is over. Return them."""
        completed: list[QueuedPodInfo] = []
        for heap in (self._refused, self._failed):
            while (first := heap.peek()) is not None and not self._policy.is_backing_off(first, now):
                heap.pop()
                completed.append(first)
        return completed

    def pop_early(self) -> QueuedPodInfo | None:
        """Remove and return the first rejected pod, although it backs off."""
        return self._refused.pop()

    def peek_early(self) -> QueuedPodInfo | None:
        """Return the pod that `pop_early` would remove, without removing it."""
        return self._refused.peek()

    def next_release(self) -> float:
        """Return the end of the next backoff; infinity if no pod backs off."""
        if not self:
            return math.inf
        heads = (heap.peek() for heap in (self._refused, self._failed))
        return min(self._policy.release_time(head) for head in heads if head is not None)
