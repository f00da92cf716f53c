"""Threads for binding cycles: few while the API server answers soon, more while it doesn't."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

import attrs

from kschedfw import Clock

FEWEST: Final = 3
"""Threads that are started without a wait, and kept. Most binding cycles are one request of some milliseconds.

Each further thread that is at work takes turns with the scheduling cycles: with six, 1,500 pods took a sixth more
processor time, and were bound no sooner.
"""
MOST: Final = 256
"""The most concurrent binding cycles. Some wait for a volume for minutes."""
WINDOW: Final = 0.25
"""Seconds that cycles wait for a thread before there are more of them, and in which it shows whether that helped."""
_LINGER: Final = 0.005
"""Seconds for which a thread that was idle waits before it takes a task.

Pods come in groups, since their watch is read at intervals, and the binding cycles that have been made in this time are
one task: their bindings are sent together.
"""
_WORTH_IT: Final = 1.1
"""The factor by which more cycles have to end in a window than before the last threads were started."""
_PROBING: Final = 20
"""The number of windows after which threads are started once more, although the last ones didn't help."""
_UNANSWERED: Final = 8
"""The number of unanswered requests from which on more threads are started only if the last ones helped.

A server that answers slowly for lack of processor time answers no sooner when it is asked more at a time: one that
bound a pod a second was asked by 275 threads over 236 connections.
"""


@attrs.frozen(eq=False)
class _Task:
    run: Callable[[], None]
    future: Future[None]


class BindingThreads:
    """An executor with as many threads as the answers of the API server need. Thread-safe.

    A thread per cycle, like kube-scheduler's goroutines, would take a connection each. And where cycles wait for the
    processor and not for the server, more threads make it worse: with one for each cycle that had waited for 0.2 s,
    there were 70 for 2,000 pods on a busy machine, which were bound no sooner than with eight. So a cycle first waits
    for a thread that is there. While cycles wait for longer than a window, a quarter more threads are started as long
    as the last ones helped, or if no cycle ends at all, since all wait for volumes and not for the server's answers. A
    thread that finds nothing to do ends if enough others are idle.
    """

    def __init__(self, clock: Clock, unanswered: Callable[[], int] = lambda: 0) -> None:
        """Make an executor without threads. `unanswered` returns the number of requests that await an answer."""
        self._clock = clock
        self._unanswered = unanswered
        self._lock = threading.RLock()
        """Guards all attributes below."""
        self._work = threading.Condition(self._lock)
        """Notified when there is a task for an idle thread, or at the end."""
        self._end = threading.Condition(self._lock)
        """Notified at the end."""
        self._watch = threading.Condition(self._lock)
        """Notified when a task has to wait and the watcher doesn't know, or at the end."""
        self._tasks: deque[_Task] = deque()
        self._idle = 0
        """The threads that have no task, among them those that have just been started."""
        self._is_waking = False
        """True while an idle thread is woken and has no task yet. When it takes one, it wakes the next thread, so that
        the thread of the scheduling cycles wakes one thread for several cycles."""
        self._watcher: threading.Thread | None = None
        self._knows = False
        """True while the watcher wakes by itself to look after the tasks that wait."""
        self._done = 0
        """The number of tasks that have ended."""
        self._ended = False
        self.threads = 0

    def submit(self, task: Callable[[], None], /) -> Future[None]:
        """Run the task on a thread. Its future is cancelled if the threads end before it has begun."""
        future: Future[None] = Future()
        with self._lock:
            if self._ended:
                raise RuntimeError("the threads for binding cycles have ended")
            self._tasks.append(_Task(task, future))
            if len(self._tasks) <= self._idle:
                self._wake()
            elif self.threads < FEWEST:
                self._start()
            elif not self._knows:
                self._tell_watcher()
        return future

    def shutdown(self) -> None:
        """Cancel what waits for a thread. What runs is left alone."""
        with self._lock:
            self._ended = True
            left = tuple(self._tasks)
            self._tasks.clear()
            self._work.notify_all()
            self._watch.notify_all()
            self._end.notify_all()
        for task in left:
            task.future.cancel()

    # --- threads that run tasks ---

    def _start(self) -> None:
        """Start a thread, with the lock held. It counts as idle at once, so that its task gets no other one."""
        self.threads += 1
        self._idle += 1
        threading.Thread(target=self._run, name="kschedfw-binding", daemon=True).start()

    def _run(self) -> None:
        task = self._take()
        while task is not None:
            self._carry_out(task)
            task = self._next()

    def _carry_out(self, task: _Task) -> None:
        if not task.future.set_running_or_notify_cancel():
            return
        try:
            task.run()
        # Whatever a plugin raises goes to who waits for the future, and the thread goes on.
        except BaseException as error:
            task.future.set_exception(error)
        else:
            task.future.set_result(None)

    def _next(self) -> _Task | None:
        """Wait for the next task. Return None if the thread isn't needed any more."""
        with self._lock:
            self._done += 1
            if not self._tasks and self._idle >= FEWEST:
                self.threads -= 1
                return None
            self._idle += 1
            return self._take()

    def _take(self) -> _Task | None:
        """Wait for a task, as a thread that is counted as idle. Return None at the end."""
        with self._lock:
            while not self._tasks and not self._ended:
                self._work.wait()
                self._end.wait(_LINGER)
            self._idle -= 1
            if self._ended:
                self.threads -= 1
                return None
            task = self._tasks.popleft()
            self._is_waking = False
            if self._tasks and self._idle:
                self._wake()
            return task

    def _wake(self) -> None:
        """Wake an idle thread, with the lock held, unless another one is about to do so."""
        if not self._is_waking:
            self._is_waking = True
            self._work.notify()

    # --- the thread that starts others ---

    def _tell_watcher(self) -> None:
        self._knows = True
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._look_after, name="kschedfw-bindings", daemon=True)
            self._watcher.start()
        else:
            self._watch.notify()

    def _look_after(self) -> None:
        """Start threads while tasks wait and more threads help."""
        with self._lock:
            while not self._ended:
                self._knows = False
                self._watch.wait_for(lambda: self._ended or self._is_short())
                self._knows = True
                best, windows = 0.0, 0
                while self._is_short():
                    before = self._done
                    self._clock.wait_until(self._watch, self._clock.now() + WINDOW)
                    ended = self._done - before
                    windows += 1
                    helped = ended > 0 and ended >= _WORTH_IT * best
                    may_help = (not ended or windows >= _PROBING) and self._unanswered() < _UNANSWERED
                    if self._is_short() and (helped or may_help):
                        best, windows = ended, 0
                        for _ in range(min(max(2, self.threads // 4), MOST - self.threads)):
                            self._start()

    def _is_short(self) -> bool:
        """Return whether more tasks wait than the idle threads are about to take, and there may be more threads."""
        return len(self._tasks) > self._idle and self.threads < MOST and not self._ended
