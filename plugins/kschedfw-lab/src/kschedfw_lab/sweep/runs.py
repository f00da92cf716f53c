"""One run of a sweep: everything that a worker needs to know, and how it does the run."""

from __future__ import annotations

import ctypes
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final, TypeVar

import attrs

from kschedfw.api import EMPTY
from kschedfw.simulator import Arrivals, Failures, Simulation
from kschedfw_lab.compare.trial import Trial
from kschedfw_lab.expressions import Scalar
from kschedfw_lab.sweep.configurations import Configuration, registry, runnable
from kschedfw_lab.sweep.draws import Draw, drawn
from kschedfw_lab.sweep.errors import SweepError, one_line
from kschedfw_lab.sweep.inputs import ClusterSource, Size, objects_of
from kschedfw_lab.sweep.measures import Metrics, Series, metrics_of, series_of
from kschedfw_lab.sweep.prices import Prices
from kschedfw_lab.sweep.usage import Usage

T = TypeVar("T")

_ONE_AT_A_TIME: Final = threading.Lock()
"""Held during a run. Threads of one process would only wait for each other, and failures are collected per process."""


@attrs.frozen
class Run:
    """A run: a cluster in a size, a configuration, a seed, times, and the wanted measurements.

    `values` are those of the factors, as their columns have them. `distributions` are those of the plugins, with
    versions; a worker must have them.
    """

    values: Mapping[str, Scalar]
    cluster: ClusterSource
    size: Size
    configuration: Configuration
    seed: int
    arrivals: Arrivals | None
    attempt_time: float
    prices: Prices | None
    points: int
    distributions: tuple[str, ...]
    draw: Draw | None = None
    key: str = ""

    def keyed(self) -> Run:
        """Return the run with its key: 16 hexadecimal digits of the hash of everything that its results depend on."""
        content = {
            "values": dict(self.values),
            "cluster": self.cluster.to_json(),
            "size": attrs.asdict(self.size),
            "configuration": self.configuration.to_json(),
            "seed": self.seed,
            "arrivals": None if self.arrivals is None else attrs.asdict(self.arrivals),
            "attemptTime": self.attempt_time,
            "prices": None if self.prices is None else self.prices.to_json(),
            "points": self.points,
            "distributions": list(self.distributions),
            "draw": self.draw,
        }
        text = json.dumps(content, sort_keys=True)
        return attrs.evolve(self, key=hashlib.sha256(text.encode()).hexdigest()[:16])


@attrs.frozen
class RunOutcome:
    """The outcome of a run: its metrics, and series if requested; or its error in one line."""

    key: str
    metrics: Metrics = EMPTY
    series: Series = EMPTY
    error: str = ""


def run_one(run: Run) -> Metrics:
    """Do the run in this process, and return its metrics.

    Raises:
        KschedfwError: the run isn't possible, or a plugin failed.
    """
    return _done(run).metrics


def outcome_of(run: Run, timeout: float | None = None) -> RunOutcome:
    """Do the run in this process. An error becomes a part of the outcome, so that one run can't end a sweep.

    A simulation that takes longer than `timeout` seconds of real time also becomes an error.
    """
    try:
        return _done(run, timeout)
    except Exception as error:
        return RunOutcome(run.key, error=one_line(error))


def _done(run: Run, timeout: float | None = None) -> RunOutcome:
    with _ONE_AT_A_TIME:
        if missing := missing_here(run.distributions):
            raise SweepError(f"the worker lacks {', '.join(missing)}")
        objects = objects_of(run.cluster, run.size)
        if run.draw is not None:
            objects = drawn(objects, run.draw, run.seed)
        trial = Trial(
            objects,
            seed=run.seed,
            attempt_time=run.attempt_time,
            arrivals=run.arrivals,
            registry=registry(),
            clock=time.perf_counter,
        )
        followed: list[Usage] = []

        def follow(simulation: Simulation) -> None:
            followed.append(Usage(simulation))

        with Failures() as failures:
            trialled = _within(
                timeout, lambda: trial.run(runnable(run.configuration).candidate, before=follow)
            )
        (usage,) = followed
        usage.close()
        if trialled.report.interrupted:  # The simulation reacts to Ctrl-C by ending early.
            raise KeyboardInterrupt
        if failures.count:
            raise SweepError(f"a plugin failed: {next(failures.lines())}")
        if not trialled.report.pods:
            raise SweepError(
                "there is nothing to schedule: no pending pod names a scheduler of the configuration"
            )
        series = series_of(trialled, usage, objects, run.points) if run.points else {}
        return RunOutcome(run.key, metrics_of(trialled, usage, run.prices), series)


def _within(seconds: float | None, work: Callable[[], T]) -> T:
    """Do the work in this thread. If it takes longer, interrupt it as Ctrl-C does.

    Python code, also in a plugin, is interrupted at once. A call that blocks outside Python is interrupted when it
    returns.

    Raises:
        SweepError: the work took longer.
    """
    if seconds is None:
        return work()
    thread = ctypes.c_ulong(threading.get_ident())
    # Reentrant: this thread may be interrupted while it holds the lock, and then acquires it again.
    lock = threading.RLock()
    ended = expired = False

    def interrupt() -> None:
        nonlocal expired
        with lock:
            if not ended:
                expired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(KeyboardInterrupt))

    def end() -> None:
        nonlocal ended
        timer.cancel()
        with lock:
            ended = True
            if expired:
                _take_back(thread)

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    try:
        timer.start()
        try:
            result = work()
        finally:
            end()
    except KeyboardInterrupt:
        if not expired:
            raise
        end()  # The interruption may have hit the first call of `end` before it was complete.
    if expired:
        raise SweepError(f"took longer than {seconds:g} seconds")
    return result


class _TakenBack(BaseException):
    """An exception that replaces an interruption of this thread that hasn't been raised yet."""


def _take_back(thread: ctypes.c_ulong) -> None:
    """Make sure that no interruption of this thread is still pending.

    An interruption can only be replaced by another exception, which is awaited here. Setting it to none would leave
    CPython's flag set for ever: up to 3.11, a profiled function then never gets past its first instruction.
    """
    try:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TakenBack))
        while True:  # The exception is raised in the next iteration.
            pass
    except _TakenBack:
        pass


def missing_here(distributions: tuple[str, ...]) -> list[str]:
    """Return the distributions (name and version) that aren't installed here in this version."""
    return [text for text in distributions if _installed(text.rpartition(" ")[0]) != text.rpartition(" ")[2]]


@cache
def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
