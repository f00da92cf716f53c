"""One run of a sweep: everything that a worker has to know, and what it does with it."""

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
from kschedfw_lab.sweep.configurations import Configuration, registry, runnable
from kschedfw_lab.sweep.constraints import Scalar
from kschedfw_lab.sweep.draws import Draw, drawn
from kschedfw_lab.sweep.errors import SweepError, one_line
from kschedfw_lab.sweep.inputs import ClusterSource, Size, objects_of
from kschedfw_lab.sweep.measures import Metrics, Series, metrics_of, series_of
from kschedfw_lab.sweep.prices import Prices
from kschedfw_lab.sweep.usage import Usage

T = TypeVar("T")

_ONE_AT_A_TIME: Final = threading.Lock()
"""A process simulates one run at a time, also if its engine has several threads: they would only wait for each other,
and failures are collected for the whole process.
"""


@attrs.frozen
class Run:
    """A run: a cluster in a size, a configuration, a seed, times, and what is measured.

    `values` are those of the factors, as their columns have them. `distributions` are those that the plugins come
    from, with versions; a worker has to have them.
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
        """The run with its key: 16 hexadecimal digits of the hash of everything that its results depend on."""
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
class Outcome:
    """The outcome of a run: its metrics, and series if they were asked for; or its error, one line."""

    key: str
    metrics: Metrics = EMPTY
    series: Series = EMPTY
    error: str = ""


def run_one(run: Run) -> Metrics:
    """Run it in this process, and return its metrics.

    Raises:
        KschedfwError: it can't run, or a plugin failed.
    """
    return _done(run).metrics


def outcome_of(run: Run, timeout: float | None = None) -> Outcome:
    """Run it in this process; its error becomes a part of the outcome, so that one run can't end a sweep.

    It is an error as well if the simulation takes longer than `timeout` seconds of the wall clock.
    """
    try:
        return _done(run, timeout)
    except Exception as error:
        return Outcome(run.key, error=one_line(error))


def _done(run: Run, timeout: float | None = None) -> Outcome:
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
        if trialled.report.interrupted:  # the simulation has taken Ctrl-C as its end
            raise KeyboardInterrupt
        if failures.count:
            raise SweepError(f"a plugin failed: {next(failures.lines())}")
        if not trialled.report.pods:
            raise SweepError(
                "there is nothing to schedule: no pending pod names a scheduler of the configuration"
            )
        series = series_of(trialled, usage, objects, run.points) if run.points else {}
        return Outcome(run.key, metrics_of(trialled, usage, run.prices), series)


def _within(seconds: float | None, work: Callable[[], T]) -> T:
    """Do the work in this thread, and interrupt it as Ctrl-C does if it takes longer.

    Python code is interrupted wherever it is, also in a plugin; a call that blocks outside Python is when it returns.

    Raises:
        SweepError: it took longer.
    """
    if seconds is None:
        return work()
    thread = ctypes.c_ulong(threading.get_ident())
    lock = threading.RLock()  # this thread may be interrupted while it holds it, and ask for it again
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
        end()  # it may have interrupted the other one
    if expired:
        raise SweepError(f"took longer than {seconds:g} seconds")
    return result


class _TakenBack(BaseException):
    """Replaces an interruption of this thread that may not have come yet."""


def _take_back(thread: ctypes.c_ulong) -> None:
    """Make sure that no interruption of this thread is still to come.

    Setting none instead would leave CPython's flag for it up for good. Up to 3.11 a function that is profiled then
    never gets past its first instruction.
    """
    try:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TakenBack))
        while True:  # it comes with the next turn
            pass
    except _TakenBack:
        pass


def missing_here(distributions: tuple[str, ...]) -> list[str]:
    """The distributions (name and version) that aren't installed in this process's environment in this version."""
    return [text for text in distributions if _installed(text.rpartition(" ")[0]) != text.rpartition(" ")[2]]


@cache
def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
