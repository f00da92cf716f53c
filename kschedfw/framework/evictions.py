"""Evictions that are carried out after the cycle that decided on them (kube-scheduler `preemption.Executor`)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Evictions:
    """The preemptions under way: their preemptors, and the tasks that are left. Thread-safe.

    kube-scheduler evicts on goroutines; here the scheduler calls `carry_out` after each cycle, so that the
    order is always the same. A preemptor that comes back to the queue before that is held back by a gate.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[str] = set()
        self._tasks: deque[tuple[str, Callable[[], None]]] = deque()

    def start(self, preemptor: str, task: Callable[[], None]) -> None:
        """Queue `task`, which evicts victims after the cycle.

        `preemptor` is the uid of a pod, or the key of a group.
        """
        with self._lock:
            self._waiting.add(preemptor)
            self._tasks.append((preemptor, task))

    def is_under_way(self, preemptor: str) -> bool:
        """Whether the preemptor's victims are still to be evicted."""
        return preemptor in self._waiting

    def carry_out(self) -> None:
        """Run all tasks.

        A preemptor stops waiting before its last task begins, since the deletion of the last victim has to
        bring it back to the queue.
        """
        while self._tasks:
            with self._lock:
                preemptor, task = self._tasks.popleft()
                if all(other != preemptor for other, _ in self._tasks):
                    self._waiting.discard(preemptor)
            # Outside of the lock: a task deletes pods, and the events of that may ask `is_under_way` or start
            # tasks.
            task()
