"""The costs of attempts: duration, processor time, garbage collection, and number of function calls."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Self

from kschedfw_lab.bench.clock import Timer
from kschedfw_lab.bench.results import GarbageCollection
from kschedfw_lab.bench.stage import Case

Progress = Callable[[int, int], None]
"""Called every `PROGRESS_INTERVAL` with the number of finished pods and of all pods."""

PROGRESS_INTERVAL = 0.1
"""The seconds between two calls of a `Progress`."""


class Laps:
    """Measures the duration of each attempt."""

    def __init__(
        self,
        case: Case,
        timer: Timer,
        cpu_timer: Timer,
        progress: Progress | None,
        between: Callable[[], None] | None,
    ) -> None:
        self.timer = timer
        self.seconds: list[float] = []
        self.elapsed = 0.0
        self.cpu_elapsed = 0.0
        self._cpu_timer = cpu_timer
        self._case = case
        self._progress = progress
        self._between = between
        self._told = timer()
        self._started = self._cpu_started = 0.0

    @property
    def is_time_up(self) -> bool:
        return self.elapsed >= self._case.time_limit

    def start(self) -> None:
        """Begin to measure an attempt."""
        self._cpu_started = self._cpu_timer()
        self._started = self.timer()

    def stop(self) -> tuple[float, float]:
        """Return the elapsed and the processor's seconds since `start`."""
        # The elapsed time is read within the processor's, so that it doesn't contain that reading.
        seconds = self.timer() - self._started
        return seconds, self._cpu_timer() - self._cpu_started

    def add(self, taken: tuple[float, float]) -> None:
        """Add an attempt to the totals. `taken` is the result of `stop`."""
        seconds, cpu_seconds = taken
        self.seconds.append(seconds)
        self.elapsed += seconds
        self.cpu_elapsed += cpu_seconds
        if self._between is not None:
            self._between()
        if self._progress is not None and self.timer() - self._told >= PROGRESS_INTERVAL:
            self._told = self.timer()
            self._progress(min(len(self.seconds), self._case.pods), self._case.pods)


class CallCount:
    """Counts the calls of Python functions in a block."""

    def __init__(self) -> None:
        self.calls = 0

    def _count(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.calls += event == "call"

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        self.calls -= 1  # The call of this function itself was counted, too.


@contextmanager
def garbage_collection(timer: Timer) -> Iterator[Callable[[], GarbageCollection]]:
    """Collect garbage, then watch the collector. Yield a function that returns what was recorded up to its call."""
    collections, seconds, started = 0, 0.0, 0.0

    def watch(phase: str, _info: Mapping[str, int]) -> None:
        nonlocal collections, seconds, started
        if phase == "start":
            started = timer()
        else:
            collections += 1
            seconds += timer() - started

    gc.collect()
    gc.callbacks.append(watch)
    try:
        yield lambda: GarbageCollection(collections, seconds)
    finally:
        gc.callbacks.remove(watch)
