"""Times decisions about groups: the algorithm's part of a group's cycle."""

from __future__ import annotations

from typing import Any

from kschedfw import Scheduler
from kschedfw_lab.bench.laps import CallCount, Laps


class GroupTrials:
    """Times the algorithm for a scheduler's groups: trying the members on each placement, and choosing one.

    Taking the members from the queue and binding them isn't timed.
    """

    def __init__(self, scheduler: Scheduler, laps: Laps) -> None:
        assert scheduler.group_cycle is not None
        algorithm = scheduler.group_cycle.algorithm
        self._scheduler = scheduler
        self._laps = laps
        self._run = algorithm.run
        self._taken = (0.0, 0.0)
        self._calls: CallCount | None = None
        algorithm.run = self._timed  # type: ignore[method-assign]  # with the same arguments

    def attempt(self) -> bool:
        """Schedule the next group, and count its trials as an attempt. Return False if no pod is active."""
        self._taken = (0.0, 0.0)
        self._scheduler.tick()
        tried = self._scheduler.schedule_one()
        if tried:
            self._laps.add(self._taken)
        return tried

    def calls(self) -> int:
        """Schedule the next group. Return the number of calls of Python functions in its trials."""
        self._calls = CallCount()
        self._scheduler.schedule_one()
        return self._calls.calls

    def _timed(self, *args: Any, **named: Any) -> Any:
        if self._calls is not None:
            with self._calls:
                return self._run(*args, **named)
        self._laps.start()
        try:
            return self._run(*args, **named)
        finally:
            # A group that preempts is tried several times.
            seconds, cpu_seconds = self._laps.stop()
            self._taken = self._taken[0] + seconds, self._taken[1] + cpu_seconds
