"""Does runs on an executor, and continues if a worker dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Final, Generic, Protocol, TypeVar

from kschedfw_lab.sweep.errors import EngineError, one_line
from kschedfw_lab.sweep.runs import RunOutcome

_IN_FLIGHT_PER_WORKER: Final = 2
"""The runs per worker that are handed to the executor: its current one and the next one."""


class Keyed(Protocol):
    """A run of any kind with its key."""

    @property
    def key(self) -> str: ...


RunT = TypeVar("RunT", bound=Keyed)


class Dispatcher(Generic[RunT]):
    """Keeps the executor busy with a limited number of runs.

    When a worker dies, nobody knows which of the unfinished runs it was doing. So each of these runs, the suspects, is
    repeated alone. One that kills its worker again has failed.
    """

    def __init__(
        self,
        executor: Executor,
        workers: int,
        outcome_of: Callable[[RunT], RunOutcome],
        take: Callable[[RunT, RunOutcome], None],
    ) -> None:
        """Make a dispatcher.

        Args:
            executor: does the runs.
            workers: the number of runs that the executor does at the same time.
            outcome_of: does one run; the executor calls it.
            take: called with each run and its outcome.
        """
        self._executor = executor
        self._most = workers * _IN_FLIGHT_PER_WORKER
        self._outcome_of = outcome_of
        self._take = take
        self._in_flight: dict[Future[RunOutcome], RunT] = {}
        self._suspects: deque[RunT] = deque()

    def run(self, runs: Iterable[RunT]) -> None:
        """Do all runs.

        Raises:
            EngineError: the executor has stopped working.
        """
        waiting = deque(runs)
        try:
            while waiting or self._suspects or self._in_flight:
                # Wait until nothing else runs: only then the death of a worker tells who caused it.
                while self._suspects and not self._in_flight:
                    self._run_alone(self._suspects.popleft())
                while waiting and not self._suspects and len(self._in_flight) < self._most:
                    self._submit(waiting.popleft())
                self._collect()
        except BaseException:
            for future in self._in_flight:
                future.cancel()
            raise

    def _submit(self, run: RunT) -> None:
        try:
            self._in_flight[self._executor.submit(self._outcome_of, run)] = run
        except (RuntimeError, OSError) as error:  # BrokenExecutor is a RuntimeError.
            raise EngineError(f"the engine takes no more runs: {one_line(error)}; --resume goes on") from None

    def _collect(self) -> None:
        done, _ = wait(self._in_flight, return_when=FIRST_COMPLETED)
        for future in [each for each in self._in_flight if each in done]:
            # Keep the order in which the runs were submitted.
            run = self._in_flight.pop(future)
            try:
                outcome = future.result()
            except BrokenExecutor:
                self._suspects.append(run)
            except CancelledError:
                raise EngineError("the engine is gone; --resume goes on") from None
            except Exception as error:
                self._take(run, RunOutcome(run.key, error=one_line(error)))
            else:
                self._take(run, outcome)

    def _run_alone(self, run: RunT) -> None:
        self._submit(run)
        self._collect()
        if self._suspects and self._suspects[-1] is run:
            self._suspects.pop()
            self._take(run, RunOutcome(run.key, error="its worker process died, twice"))
