"""A scheduler whose calls are awaited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Self, TypeVar

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.scheduler import (
    BindingExecutor,
    ConcurrentCycleError,
    Placement,
    PlacementEndedError,
    Scheduler,
    ScheduleResult,
)

R = TypeVar("R")


class NotOpenError(KschedfwError, RuntimeError):
    """An `AsyncScheduler` is used outside its `async with`."""

    def __str__(self) -> str:
        return "the scheduler is open inside `async with AsyncScheduler(…) as scheduler`, and only there"


class AsyncScheduler:
    """A `Scheduler` in asyncio: its cycles run on a thread of their own, bindings on a few others.

        async with AsyncScheduler(lambda executor: Scheduler(cluster, executor=executor)) as scheduler:
            async with await scheduler.place(pod) as placement:
                await placement.commit()

    Calls of `place` are served one at a time, in their order. At the end of the `async with` the scheduler is closed:
    placements are given up, and bindings that have begun are awaited.

    Args:
        make: makes the scheduler, on its own thread; it gets the executor for the bindings of `run`.
        bindings: how many pods are bound at a time. Further ones wait for their turn.
    """

    def __init__(self, make: Callable[[BindingExecutor], Scheduler], *, bindings: int = 16) -> None:
        if bindings < 1:
            raise ValueError(f"bindings: expected at least 1, found {bindings!r}")
        self._make = make
        self._bindings_limit = bindings
        self._scheduler: Scheduler | None = None
        self._cycles: ThreadPoolExecutor | None = None
        self._bindings: ThreadPoolExecutor | None = None
        self._is_running = False
        self._cycles_thread = 0

    @property
    def scheduler(self) -> Scheduler:
        """The wrapped scheduler. Run its cycles only on this object's thread.

        Raises:
            NotOpenError: it is not open.
        """
        if self._scheduler is None:
            raise NotOpenError
        return self._scheduler

    async def __aenter__(self) -> Self:
        self._cycles = ThreadPoolExecutor(1, "kschedfw-cycles", initializer=self._note_thread)
        self._bindings = ThreadPoolExecutor(self._bindings_limit, "kschedfw-bindings")
        making = self._cycles.submit(self._make, self._bindings)
        try:
            self._scheduler = await _ended(making)
        except BaseException:
            # If this call is cancelled, `make` goes on, and nobody else would close what it makes.
            making.add_done_callback(_close_made)
            await self._shut_down()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._cycles is not None
        assert self._bindings is not None
        scheduler = self.scheduler
        scheduler.stop()
        self._scheduler = None
        try:
            # After the attempt that is being made, and after those that wait for it, which are refused.
            await _ended(self._cycles.submit(scheduler.close))
        finally:
            await self._shut_down()

    async def place(self, pod: Pod, *, preempt: bool = True) -> AsyncPlacement:
        """Find a node for this pod, and hold the place until it is committed or given up, as `Scheduler.place`.

        A cancelled call holds nothing: if it waits for its turn, nothing happens; if the attempt is being made, its
        place is given up before the next attempt.

        Raises:
            NotOpenError: the scheduler is not open.
            ConcurrentCycleError: it is being `run`.
            FitError, NoNodesAvailableError, SchedulingError, ProfileError, PodInFlightError: as `Scheduler.place`.
        """
        scheduler, cycles, bindings = self.scheduler, self._cycles, self._bindings
        assert cycles is not None
        assert bindings is not None
        self._check_not_running()
        placing = cycles.submit(scheduler.place, pod, preempt=preempt)
        try:
            placement = await _ended(placing)
        except asyncio.CancelledError:
            # The attempt has begun, and can't be stopped.
            if not placing.cancel():
                placing.add_done_callback(lambda done: self._give_up(done, cycles))
            raise
        return AsyncPlacement(placement, scheduler, cycles, bindings)

    async def run(self) -> None:
        """Schedule the pods of the cluster until the task is cancelled; then the scheduler is closed.

        Raises:
            NotOpenError: the scheduler is not open.
            ConcurrentCycleError: it is being run already.
        """
        scheduler, cycles = self.scheduler, self._cycles
        assert cycles is not None
        self._check_not_running()
        self._is_running = True
        running = cycles.submit(scheduler.run)
        try:
            await _ended(running)
        except asyncio.CancelledError:
            scheduler.stop()
            # The present attempt and the bindings come to their ends.
            await _ended(running)
            raise
        finally:
            self._is_running = False

    def _note_thread(self) -> None:
        self._cycles_thread = threading.get_ident()

    def _check_not_running(self) -> None:
        # Only calls on the event loop read and set it, so it needs no lock.
        if self._is_running:
            raise ConcurrentCycleError(
                "this scheduler is being run: it takes the pods of its cluster by itself; end `run` to place pods"
            )

    def _give_up(self, placing: Future[Placement], cycles: ThreadPoolExecutor) -> None:
        """Give up the place of a cancelled call.

        On the thread of the cycles this comes before the next attempt. On the event loop's thread, where plugins that
        write must not run, it is put behind the attempts that wait already.
        """
        if placing.cancelled() or placing.exception() is not None:
            return
        placement = placing.result()
        if threading.get_ident() == self._cycles_thread:
            placement.give_up()
        else:
            with suppress(RuntimeError):
                # Raised if the scheduler was closed meanwhile, which gives up all places.
                cycles.submit(placement.give_up)

    async def _shut_down(self) -> None:
        """End the threads, after the last commit."""
        for executor in (self._cycles, self._bindings):
            if executor is not None:
                # At once, and then waited for elsewhere: the loop must not block, and a task that is cancelled here
                # has ended the threads all the same.
                executor.shutdown(wait=False)
                await asyncio.to_thread(executor.shutdown)


class AsyncPlacement:
    """A pod that has a place on a node, but isn't bound yet; see `Placement`.

    `async with` gives the place up at its end, unless it was committed.
    """

    def __init__(
        self,
        placement: Placement,
        scheduler: Scheduler,
        cycles: ThreadPoolExecutor,
        bindings: ThreadPoolExecutor,
    ) -> None:
        self._placement = placement
        self._scheduler = scheduler
        self._cycles = cycles
        self._bindings = bindings
        self._commit: Future[None] | None = None

    @property
    def pod(self) -> Pod:
        """The pod, with its node."""
        return self._placement.pod

    @property
    def node_name(self) -> str:
        return self._placement.node_name

    @property
    def result(self) -> ScheduleResult:
        """The numbers of evaluated and of feasible nodes."""
        return self._placement.result

    @property
    def is_waiting(self) -> bool:
        """True if the pod waits for a permit plugin; `commit` would wait for it, too."""
        return self._placement.is_waiting

    async def commit(self) -> None:
        """Bind the pod, as `Placement.commit`.

        Cancelled before it begins, it does nothing. Cancelled while the pod waits for permission, it refuses the pod.
        Cancelled later, the binding goes on: a further `commit` tells how it ended.

        Raises:
            PlacementEndedError: the placement was given up before.
            FitError, SchedulingError: as `Placement.commit`.
        """
        # A later `commit` waits for the binding that an earlier one began.
        if self._commit is None:
            try:
                self._commit = self._bindings.submit(self._placement.commit)
            except RuntimeError:
                # The scheduler is closed.
                raise PlacementEndedError(self.pod) from None
        commit = self._commit
        try:
            await _ended(commit)
        except asyncio.CancelledError:
            if commit.cancel():
                self._commit = None
            elif (waiting := self._scheduler.waiting_pods.get(self.pod.uid)) is not None:
                waiting.reject("", "the commit was cancelled")
            raise

    async def give_up(self) -> None:
        """Release the resources, as `Placement.give_up`; does nothing if the placement has ended."""
        try:
            ending = self._cycles.submit(self._placement.give_up)
        except RuntimeError:
            # The scheduler is closed, which gives up all places.
            return
        await _ended(ending)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._commit is None:
            await self.give_up()


async def _ended(future: Future[R]) -> R:
    """Wait for a call in another thread. Cancelling the wait doesn't end the call."""
    # `asyncio.wrap_future` would cancel the call with the wait.
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell(_: Future[R]) -> None:
        with suppress(RuntimeError):
            # Raised if the loop is closed; then nobody waits.
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    await done.wait()
    return future.result()


def _close_made(making: Future[Scheduler]) -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().close()
