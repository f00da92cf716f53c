"""Worker processes on this machine, as an executor that outlives the death of a worker."""

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
"""As in the command: with Python's own 700, garbage collection takes a tenth of a simulation's time."""


class WorkerProcesses(Executor):
    """Processes that start fresh, as workers on other machines do: they know nothing of this process.

    If a worker dies, what all of them were doing fails with BrokenProcessPool, and the next call starts new ones.
    Workers don't react to Ctrl-C; they end with this process, however it ends, and with `shutdown`.
    """

    def __init__(self, workers: int) -> None:
        """
        Args:
            workers: how many processes, from 1 up.
        """
        if workers < 1:
            raise ValueError(f"workers: expected a number from 1 up, found {workers}")
        self.workers = workers
        self._context = multiprocessing.get_context("spawn")
        self._pool: ProcessPoolExecutor | None = None
        self._lifeline: Connection | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As of any executor; in new processes, if the old ones are broken."""
        try:
            return self._running().submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            self.shutdown()
            return self._running().submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers. With `cancel_futures` they end at once, whatever they are doing."""
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
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the terminal sends it to all, and the first process ends the others
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    """End this process when the other end of the pipe is closed, as it is when the first process has died."""
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
