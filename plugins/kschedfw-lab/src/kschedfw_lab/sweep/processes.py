"""An executor with worker processes on this machine that survives the death of a worker.

loky 3.7 was tried in its place: when one of two workers was killed, the executor failed the calls in progress, all that
waited, and every later one.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_ALLOCATIONS_BETWEEN_COLLECTIONS: Final = 20_000
"""The threshold of the garbage collector, as in the command.

With Python's own 700, garbage collection takes a tenth of a simulation's time.
"""


class WorkerProcesses(Executor):
    """Worker processes that start fresh, as workers on other machines do, and share nothing with this process.

    If a worker dies, all calls in progress fail with BrokenProcessPool, and the next call starts new workers. Workers
    ignore Ctrl-C. They end with `shutdown`, or when this process ends for whatever reason.
    """

    def __init__(self, workers: int) -> None:
        """Make an executor.

        Args:
            workers: the number of processes, at least 1.
        """
        if workers < 1:
            raise ValueError(f"workers: expected a number from 1 up, found {workers}")
        self.workers = workers
        self._context = multiprocessing.get_context("spawn")
        self._pool: ProcessPoolExecutor | None = None
        self._lifeline: Connection | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a call, as `Executor.submit`. If the processes are broken, start new ones first."""
        try:
            return self._running().submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            self.shutdown()
            return self._running().submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers. With `cancel_futures` they end at once, even if they are busy."""
        if self._pool is None or self._lifeline is None:
            return
        if cancel_futures:
            self._lifeline.close()
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)
        self._lifeline.close()
        self._pool = self._lifeline = None

    def _running(self) -> ProcessPoolExecutor:
        if self._pool is None:
            theirs, self._lifeline = self._context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=self._context, initializer=_begin, initargs=(theirs,)
            )
        return self._pool


def _begin(lifeline: Connection) -> None:
    # The terminal sends Ctrl-C to all processes, and the first process ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    """End this process when the other end of the pipe is closed. The system closes it when the first process ends."""
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
