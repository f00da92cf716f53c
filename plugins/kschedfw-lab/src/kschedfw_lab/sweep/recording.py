"""Records the outcomes of runs as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from kschedfw_lab.results.values import ResultsError, Value
from kschedfw_lab.results.writer import ResultsWriter
from kschedfw_lab.sweep.errors import one_line
from kschedfw_lab.sweep.runs import RunOutcome


class Recorded(Protocol):
    """A run of any kind with its key and the values of its factors."""

    @property
    def key(self) -> str: ...

    @property
    def values(self) -> Mapping[str, Value]: ...


RunT = TypeVar("RunT", bound=Recorded)


class Recorder(Generic[RunT]):
    """Records outcomes, and reports each one with the numbers of finished and of all runs."""

    def __init__(
        self,
        writer: ResultsWriter,
        total: int,
        progress: Callable[[RunT, RunOutcome, int, int], None] | None,
    ) -> None:
        self._writer = writer
        self._total = total
        self._progress = progress
        self.count = 0

    def take(self, run: RunT, outcome: RunOutcome) -> None:
        """Record the outcome. If results can't hold it, record an error of the run."""
        if not outcome.error:
            try:
                self._writer.add(run.key, run.values, outcome.metrics, outcome.series)
            except ResultsError as error:
                outcome = RunOutcome(run.key, error=one_line(error))
        if outcome.error:
            self._writer.add_failure(run.key, run.values, outcome.error)
        self.count += 1
        if self._progress is not None:
            self._progress(run, outcome, self.count, self._total)
