"""Running independent pieces of work on several threads. The results don't depend on the number of threads.

Chunk size and worker count: kube-scheduler `parallelize.Parallelizer`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import isqrt
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.records import define

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

DEFAULT_PARALLELISM = 16


class ParallelismError(KschedfwError, ValueError):
    """The error of a parallelism below 1."""


def chunk_size(pieces: int, parallelism: int) -> int:
    """Return the number of pieces that a worker takes at a time: max(1, min(√n, n/parallelism + 1)).

    Unlike kube-scheduler's, chunks of few pieces are made small enough to give every worker one. There a
    cluster of 16 nodes keeps 8 of 16 workers busy, which matters only to hooks that block.
    """
    size = min(isqrt(pieces), pieces // parallelism + 1, max(1, pieces // parallelism))
    return max(1, size)


class Parallelizer:
    """A pool of up to `parallelism` threads: the caller's, and others that are started on first use.

    Since the caller's thread always takes its part, work may itself use the parallelizer, to any depth.

    Raises:
        ParallelismError: parallelism below 1.
    """

    def __init__(self, parallelism: int = DEFAULT_PARALLELISM) -> None:
        if parallelism < 1:
            raise ParallelismError(f"parallelism: expected at least 1, found {parallelism}")
        self.parallelism = parallelism
        self._pool: ThreadPoolExecutor | None = None
        self._pool_lock = threading.Lock()

    def map_until(self, pieces: int, work: Callable[[int], T], enough: Callable[[T], bool]) -> list[T]:
        """Return the results of `work(0)`, `work(1)`, … up to and including the first that is `enough`.

        `enough` sees the results one at a time and in order of the pieces, so it may count. Later pieces may
        have been worked on already when it stops; their results are dropped and their exceptions ignored. The
        outcome is always that of a serial loop. An exception of `work` within that loop is raised here, and no
        further chunk is begun.
        """
        if self.parallelism == 1 or pieces <= 1:
            results = []
            for piece in range(pieces):
                results.append(work(piece))
                if enough(results[-1]):
                    break
            return results
        from concurrent.futures import wait  # a single thread doesn't need it

        run = _ChunkedRun(pieces, chunk_size(pieces, self.parallelism), work, enough)
        helpers = [
            self._threads().submit(run.take_chunks) for _ in range(min(self.parallelism, run.chunks) - 1)
        ]
        run.take_chunks()
        # No chunk is left for helpers that haven't begun. Waiting for them could deadlock: with nested calls all
        # threads may be waiting here.
        wait([helper for helper in helpers if not helper.cancel()])
        return run.results()

    def map(self, pieces: int, work: Callable[[int], T]) -> list[T]:
        """Return `[work(0), …, work(pieces - 1)]`; raise what the first failing piece raised."""
        return self.map_until(pieces, work, _never)

    def close(self) -> None:
        """End the threads. They are started again if the parallelizer is used again."""
        with self._pool_lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _threads(self) -> ThreadPoolExecutor:
        with self._pool_lock:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(self.parallelism - 1, thread_name_prefix="kschedfw")
            return self._pool


def _never(_result: object) -> bool:
    return False


@define(eq=False)
class _ChunkedRun(Generic[T]):
    """One call of map_until. Chunks are handed out in order, and their results are evaluated in order."""

    pieces: int
    size: int
    work: Callable[[int], T]
    enough: Callable[[T], bool]
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _next_chunk: int = 0
    _finished: dict[int, tuple[list[T], Exception | None]] = attrs.field(factory=dict)
    _examined: int = 0
    _results: list[T] = attrs.field(factory=list)
    _error: BaseException | None = None
    _stopped: bool = False

    @property
    def chunks(self) -> int:
        return -(-self.pieces // self.size)

    def take_chunks(self) -> None:
        """Work until nothing is left to take; never raises."""
        try:
            self._take_chunks()
        # Kept: the caller's thread raises it again.
        except BaseException as error:
            with self._lock:
                self._error = error
                self._stopped = True

    def _take_chunks(self) -> None:
        while True:
            with self._lock:
                chunk = self._next_chunk
                if self._stopped or chunk >= self.chunks:
                    return
                self._next_chunk += 1
            outcome = self._do(chunk)
            with self._lock:
                self._finished[chunk] = outcome
                self._examine()

    def _do(self, chunk: int) -> tuple[list[T], Exception | None]:
        results: list[T] = []
        start = chunk * self.size
        for piece in range(start, min(start + self.size, self.pieces)):
            # Without the lock: a piece too many is only dropped.
            if self._stopped:
                break
            try:
                results.append(self.work(piece))
            except Exception as error:
                # Kept: the caller's thread raises it again if this chunk's results are used.
                return results, error
        return results, None

    def _examine(self) -> None:
        """Evaluate the finished chunks whose predecessors are evaluated."""
        while not self._stopped and self._examined in self._finished:
            results, error = self._finished.pop(self._examined)
            self._examined += 1
            for result in results:
                self._results.append(result)
                if self.enough(result):
                    self._stopped = True
                    return
            if error is not None:
                self._error = error
                self._stopped = True

    def results(self) -> list[T]:
        if self._error is not None:
            raise self._error
        return self._results
