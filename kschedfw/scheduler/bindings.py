"""The binding cycles that are under way, run on an executor."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, Protocol, runtime_checkable

import attrs

from kschedfw.api.records import define
from kschedfw.cluster.protocol import BindsTogether
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.metrics import Operation
from kschedfw.framework.parts import Parts
from kschedfw.framework.status import Status
from kschedfw.framework.waiting_pods import PodInPreBind
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.binding_cycle import BindingCycle
from kschedfw.scheduler.errors import BindingCancelledError

_log = logging.getLogger(__name__)

_TOGETHER: Final = 16
"""The most pods that are bound together. The API server binds them one after another."""
_AT_A_TIME: Final = 3
"""The most tasks at a time that bind pods together. While these wait for answers, more requests get no faster ones."""


class BindingExecutor(Protocol):
    """An executor for binding cycles, such as `concurrent.futures.Executor`.

    If `submit` returns a future and the future is cancelled, its binding cycle is given up.
    """

    def submit(self, task: Callable[[], None], /) -> object: ...


class InlineExecutor:
    """Runs every binding cycle immediately, on the scheduler's thread: for simulations and tests."""

    def submit(self, task: Callable[[], None], /) -> None:
        task()


@runtime_checkable
class _Future(Protocol):
    def cancelled(self) -> bool: ...

    def add_done_callback(self, callback: Callable[[_Future], object], /) -> object: ...


@define(eq=False)
class _Binding:
    """One binding cycle. Once it has `ended`, later calls don't affect its pod."""

    attempt: Attempt
    ended: bool = False


@define(eq=False)
class Bindings:
    """The binding cycles of assumed pods, from start to end. Thread-safe.

    A cycle runs on the executor. While its pod waits for permission it occupies no thread, and goes on when the
    wait ends. Every cycle ends, whatever is raised and even if the executor is shut down.

    If the cluster can bind pods together, a task of the executor takes all cycles that wait for one, as long as nothing
    in them takes time but the binding itself.
    """

    _executor: BindingExecutor
    _cycle: BindingCycle
    _parts: Parts
    _changed: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _running: int = attrs.field(default=0, init=False)
    _waiting: int = attrs.field(default=0, init=False)
    _stops: int = attrs.field(default=0, init=False)
    """The number of times that a running cycle ended or began to wait."""
    _fresh: deque[_Binding] = attrs.field(factory=deque, init=False)
    """The cycles that no task of the executor has taken."""
    _is_asked: bool = attrs.field(default=False, init=False)
    """True while the executor has a task that hasn't begun, which takes the first of these cycles."""
    _tasks: int = attrs.field(default=0, init=False)
    """The number of tasks that have begun, and not ended, of those that take cycles."""
    _cancelled: deque[_Binding] = attrs.field(factory=deque, init=False)
    _cluster: BindsTogether | None = attrs.field(init=False)
    """The cluster if it can bind pods together, and no extender may bind them in its place."""

    @_cluster.default
    def _binding_together(self) -> BindsTogether | None:
        cluster = self._parts.cluster
        return cluster if isinstance(cluster, BindsTogether) and not self._parts.extenders else None

    def start(self, attempt: Attempt) -> None:
        """Begin the binding cycle of a pod that is assumed, reserved and permitted, or waits for permission."""
        assert attempt.assumed is not None
        self._parts.pods_in_pre_bind.add(PodInPreBind(attempt.assumed))
        with self._changed:
            self._running += 1
            self._fresh.append(_Binding(attempt))
        self._ask()

    def reap(self) -> None:
        """Give up the cycles that the executor has cancelled."""
        while self._cancelled:
            # Not on the thread that cancelled it, which may hold the executor's locks.
            self._abandon(self._cancelled.popleft(), BindingCancelledError())

    def await_one(self) -> bool:
        """Wait until one of the cycles has ended or waits for permission; return False if none runs."""
        with self._changed:
            if not self._running:
                return False
            # Not by `_running`, which stays the same if one cycle ends while another goes on.
            before = self._stops
            # The executor never runs a cancelled cycle, so it ends only when it is reaped.
            self._changed.wait_for(lambda: self._stops != before or self._cancelled)
        self.reap()
        return True

    def await_all(self) -> None:
        """Wait until all have ended. A cycle that waits for permission ends only when its wait is ended elsewhere."""
        while True:
            self.reap()
            with self._changed:
                if not self._running and not self._waiting:
                    return
                self._changed.wait_for(lambda: not (self._running or self._waiting) or self._cancelled)

    # The stages of a cycle

    def _ask(self) -> None:
        """Have the executor begin a cycle that hasn't begun, unless it is about to, or enough others are."""
        with self._changed:
            is_busy = self._cluster is not None and self._tasks >= _AT_A_TIME
            if self._is_asked or is_busy or not self._fresh:
                return
            self._is_asked = True
        self._submit(self._begin_some, lambda: self._take(len(self._fresh)))

    def _begin_some(self) -> None:
        """Begin the first cycle, and with it others whose pods can be bound together with its pod."""
        with self._changed:
            self._tasks += 1
            left = self._take(1 if self._cluster is None else _TOGETHER)
        # Other threads begin the others meanwhile.
        self._ask()
        together: list[_Binding] = []
        try:
            while left:
                self._run(left.popleft(), lambda each: self._begin(each, together))
            if self._cluster is not None and together:
                assumed = [pod for each in together if (pod := each.attempt.assumed) is not None]
                with self._cluster.binding_together(assumed):
                    for each in together:
                        self._run(each, self._bind)
        except BaseException as error:
            for each in (*together, *left):
                self._abandon(each, error)
            raise
        finally:
            with self._changed:
                self._tasks -= 1
            self._ask()

    def _begin(self, binding: _Binding, together: list[_Binding]) -> None:
        """Begin a cycle. If only its binding is left, add it to those that are bound together."""
        attempt = binding.attempt
        if not self._is_well(binding, self._cycle.begin(attempt)):
            return
        waiting = self._parts.waiting_pods.get(attempt.pod.uid)
        if waiting is None:
            if self._cluster is None:
                self._finish(binding)
            elif attempt.framework.only_binds(attempt.state):
                self._prepare(binding, together)
            else:
                # A plugin's pre_bind may take minutes. Other bindings don't wait for it.
                self._submit_finish(binding)
            return
        # Counted before the callback is set, since `on_settled` calls back at once if the wait has ended
        # already.
        with self._changed:
            self._waiting += 1
            self._stop_running()
        waiting.on_settled(lambda: self._resume(binding))

    def _resume(self, binding: _Binding) -> None:
        with self._changed:
            self._running += 1
            self._waiting -= 1
        self._submit_finish(binding)

    def _finish(self, binding: _Binding) -> None:
        self._cycle.run(binding.attempt)
        self._end(binding)

    def _prepare(self, binding: _Binding, together: list[_Binding]) -> None:
        if self._is_well(binding, self._cycle.prepare(binding.attempt)):
            together.append(binding)

    def _bind(self, binding: _Binding) -> None:
        if self._is_well(binding, self._cycle.finish(binding.attempt)):
            self._end(binding)

    def _is_well(self, binding: _Binding, status: Status) -> bool:
        """Return whether the status is a success. Otherwise give the pod up and end its cycle."""
        if not status.is_success:
            self._cycle.give_up(binding.attempt, status)
            self._end(binding)
        return status.is_success

    # How they run

    def _submit_finish(self, binding: _Binding) -> None:
        self._submit(lambda: self._run(binding, self._finish), lambda: (binding,))

    def _submit(self, task: Callable[[], None], take: Callable[[], Iterable[_Binding]]) -> None:
        """Have the executor run a task; if it doesn't, give up the cycles that `take` returns then."""
        try:
            future = self._executor.submit(task)
        # The executor refuses work, for example since it was shut down.
        except Exception as error:
            for binding in take():
                self._abandon(binding, error)
            return
        # The class first: checking the protocol takes tens of microseconds.
        if future is not None and isinstance(future, (Future, _Future)):
            future.add_done_callback(lambda done: self._note_cancelled(take()) if done.cancelled() else None)

    def _take(self, most: int) -> deque[_Binding]:
        """Return the first cycles that no task has taken, and which no other caller gets."""
        with self._changed:
            self._is_asked = False
            return deque(self._fresh.popleft() for _ in range(min(most, len(self._fresh))))

    def _note_cancelled(self, bindings: Iterable[_Binding]) -> None:
        with self._changed:
            self._cancelled.extend(bindings)
            self._changed.notify_all()

    def _run(self, binding: _Binding, stage: Callable[[_Binding], None]) -> None:
        """Run a stage, and abandon the binding if it raises.

        No Exception leaves this method: an executor would lose it, and without an executor it would end the
        scheduler's loop.
        """
        if binding.ended:
            return
        try:
            self._parts.metrics.workers(Operation.BINDING, 1)
            try:
                stage(binding)
            finally:
                self._parts.metrics.workers(Operation.BINDING, -1)
        except BaseException as error:
            self._abandon(binding, error)
            # KeyboardInterrupt and the like end the process.
            if not isinstance(error, Exception):
                raise

    def _abandon(self, binding: _Binding, error: BaseException) -> None:
        """Requeue the pod and end the cycle, unless it has ended."""
        with self._changed:
            if binding.ended:
                return
            binding.ended = True
        pod = binding.attempt.pod
        if not isinstance(error, BindingCancelledError | KeyboardInterrupt):
            _log.error("the binding cycle of %s failed", pod.key, exc_info=error)
        try:
            self._cycle.give_up(binding.attempt, Status.from_error(error))
        except HOOK_FAILURES:
            _log.exception("%s couldn't be given back", pod.key)
        finally:
            with self._changed:
                self._stop_running()

    def _end(self, binding: _Binding) -> None:
        with self._changed:
            if not binding.ended:
                binding.ended = True
                self._stop_running()

    def _stop_running(self) -> None:
        self._running -= 1
        self._stops += 1
        self._changed.notify_all()
