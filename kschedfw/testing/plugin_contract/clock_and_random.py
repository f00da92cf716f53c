"""Checks that a plugin takes time and chance from its handle's clock and random generator, and doesn't sleep."""

from __future__ import annotations

import datetime
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from unittest import mock

import numpy as np

from kschedfw.testing.plugin_contract.stage import NewStage, difference, on_stages
from kschedfw.testing.plugin_contract.subject import Subject, violated


class ChanceChecks(Subject):
    """Checks that time and chance come only from the handle."""

    @on_stages()
    def test_two_instances_with_the_same_seed_and_clock_agree(self, new_stage: NewStage) -> None:
        drawn = _global_chance()
        slept: list[float] = []
        with _replaced(_package_of(self), {time.sleep: _recording(slept)}):
            one = new_stage().books()
        if slept:
            violated(
                f"a hook of {self._name} sleeps for {slept[0]:g} s, and nothing is scheduled meanwhile",
                "let the pod wait instead: `Status.wait` in permit, or `retry_at` of a refusal; what comes from "
                "elsewhere is fetched by a thread of the plugin's, and hooks read what there is",
            )
        if _global_chance() != drawn:
            violated(
                f"{self._name} draws from the global random generator",
                "draw from `self.handle.random`, which the scheduler seeds: otherwise no decision can be repeated",
            )
        other = new_stage().books()
        if (different := difference(one, other)) != "":
            violated(
                f"two instances of {self._name} with the same seed and clock disagree on {different}: "
                f"{one.get(different)!r} and {other.get(different)!r}",
                "take chance from `self.handle.random` and time from `self.handle.clock`; keep nothing that "
                "changes in the class or the module, for each profile has an instance of its own",
            )
        with wall_clock_ahead(_package_of(self)):
            later = new_stage().books()
        if (different := difference(one, later)) != "":
            violated(
                f"{self._name} reads the wall clock: {different} is {one.get(different)!r}, and years later "
                f"{later.get(different)!r}, although the scheduler's clock stands still",
                "ask `self.handle.clock.now()`, which tests and simulations move by hand",
            )


def _recording(slept: list[float]) -> Callable[[float], None]:
    """Return a sleep that returns at once in this thread, which calls the hooks, and records its duration."""
    sleep, thread = time.sleep, threading.get_ident()

    def record(seconds: float) -> None:
        # A plugin's own thread may sleep, for example between two fetches.
        if threading.get_ident() == thread:
            slept.append(seconds)
        else:
            sleep(seconds)

    return record


def _global_chance() -> object:
    # Reads the global generator, to check that the plugin doesn't use it.
    _, keys, *rest = np.random.get_state()
    return random.getstate(), np.asarray(keys).tolist(), rest


def _package_of(subject: Subject) -> str:
    return subject._registry.load(subject._name).__module__.partition(".")[0]


_YEARS = 7 * 365 * 86_400 + 12_345
_CLOCKS: tuple[tuple[str, int], ...] = (
    ("time", _YEARS),
    ("time_ns", _YEARS * 1_000_000_000),
    ("monotonic", _YEARS),
    ("monotonic_ns", _YEARS * 1_000_000_000),
    ("perf_counter", _YEARS),
    ("perf_counter_ns", _YEARS * 1_000_000_000),
)


class _LaterDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _LaterDatetime:
        return super().now(tz) + datetime.timedelta(seconds=_YEARS)

    @classmethod
    def utcnow(cls) -> _LaterDatetime:
        return cls.now(datetime.UTC).replace(tzinfo=None)


class _LaterDate(datetime.date):
    @classmethod
    def today(cls) -> _LaterDate:
        return super().today() + datetime.timedelta(seconds=_YEARS)


def wall_clock_ahead(package: str) -> AbstractContextManager[None]:
    """Set the wall clock years ahead, in the modules `time` and `datetime` and in the package.

    In the package, names imported from these modules are replaced.
    """
    later: dict[object, object] = {
        getattr(time, name): _ahead(getattr(time, name), offset) for name, offset in _CLOCKS
    }
    return _replaced(package, later | {datetime.datetime: _LaterDatetime, datetime.date: _LaterDate})


@contextmanager
def _replaced(package: str, replacements: Mapping[object, object]) -> Iterator[None]:
    """Replace values of `time` and `datetime`, there and in the modules of the package."""
    # Functions of C and classes, which are hashed by identity; other values of a module may not be hashable.
    kinds = {type(value) for value in replacements}
    with ExitStack() as patches:
        modules = [
            module
            for name, module in sys.modules.items()
            if name == package or name.startswith(f"{package}.")
        ]
        for module in (time, datetime, *modules):
            # A list, since patching writes to the dict.
            found = [
                (name, replacements[value])
                for name, value in vars(module).items()
                if type(value) in kinds and value in replacements
            ]
            for name, new in found:
                patches.enter_context(mock.patch.object(module, name, new))
        yield


def _ahead(clock: Callable[[], float], offset: int) -> Callable[[], float]:
    return lambda: clock() + offset
