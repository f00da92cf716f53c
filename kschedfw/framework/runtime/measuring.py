"""Measurement of a framework's extension points and plugins for a recorder.

Extension points are methods of the framework marked `@measured`. Hooks are wrapped when the hook table is
compiled. A framework without a recorder has no `Meter`: its hooks aren't wrapped, and a marked method tests one
attribute.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, TypeVar, cast

import attrs
import numpy as np

from kschedfw.api.records import define
from kschedfw.framework.clock import Clock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.hook_spec import HookSpec
from kschedfw.framework.metrics import (
    MeasuredPoint,
    MetricsRecorder,
    Operation,
    PluginSampling,
    PluginTimes,
    listens,
)
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.results import PreBindPreFlightResult, PreFilterResult, Verdicts
from kschedfw.framework.runtime.hooks import Hook, HookTable
from kschedfw.framework.status import Code, Status

MethodT = TypeVar("MethodT", bound=Callable[..., object])
T = TypeVar("T")


def measured(point: MeasuredPoint) -> Callable[[MethodT], MethodT]:
    """Measure a method that runs an extension point for a pod, if the object's `_meter` isn't None."""

    def measure(method: MethodT) -> MethodT:
        # Built as source: handing arguments on as *args and **kwargs costs several times as much as the test.
        arguments = ", ".join(inspect.signature(method).parameters)
        run: Callable[..., object] = eval(
            f"lambda {arguments}: method({arguments}) if self._meter is None "
            f"else self._meter.run_point(point, method, {arguments})",
            {"method": method, "point": point},
        )
        return cast("MethodT", wraps(method)(run))

    return measure


class Meter:
    """Times the extension points and the hooks of one framework, for a recorder. Thread-safe."""

    def __init__(
        self, recorder: MetricsRecorder, clock: Clock, profile: str, sampling: PluginSampling | None
    ) -> None:
        self._recorder = recorder
        self._profile = profile
        self._sampling = sampling
        self._evaluations = _Evaluations(recorder, profile)
        self.now = recorder.stopwatch if isinstance(recorder, PluginTimes) else clock.monotonic

    @classmethod
    def for_recorder(
        cls, recorder: MetricsRecorder, clock: Clock, profile: str, sampling: PluginSampling | None
    ) -> Meter | None:
        """Return a meter, or None for the no-op recorder."""
        return cls(recorder, clock, profile, sampling) if listens(recorder) else None

    def timed(self, hooks: HookTable) -> HookTable:
        """Return the hooks, timed in sampled cycles where their specifications ask for it; calls aren't counted."""

        def timed(spec: HookSpec, plugin: str, hook: Hook) -> Hook:
            point = spec.measured
            if point is None or spec.name == "pre_enqueue":
                return hook
            return _sampled(hook, self._timed(plugin, point, hook))

        return hooks.wrapped(timed)

    def counted(self, hooks: HookTable) -> HookTable:
        """Return the hooks, timed and counted where their specifications ask for it."""
        return hooks.wrapped(self._counted_hook)

    def _counted_hook(self, spec: HookSpec, plugin: str, hook: Hook) -> Hook:
        point = spec.measured
        if point is None:
            return hook
        timed = self._timed(plugin, point, hook)
        match spec.name:
            case "pre_enqueue":
                return self._sampled_without_state(hook, timed)
            case "pre_filter" | "pre_score":
                return self._evaluated(plugin, point, _sampled(hook, timed))
            case "filter" | "score":
                return self._evaluated_per_node(plugin, point, hook, timed)
            case "filter_batch" | "score_batch":
                return self._evaluated_in_batch(plugin, point, _sampled(hook, timed))
        return _sampled(hook, timed)

    def run_point(self, point: MeasuredPoint, run: Callable[..., T], *arguments: object) -> T:
        """Call `run`, which runs the plugins of a point for a pod. Record its duration and its code."""
        started = self.now()
        answer = run(*arguments)
        self.ended(point, _outcome(answer), started)
        return answer

    def nodes_asked(self) -> None:
        """Record the calls of filters that were made outside of a measured point."""
        self._evaluations.report()

    @contextmanager
    def working(self, operation: Operation, parallelizer: Parallelizer, pieces: int) -> Iterator[None]:
        """Report the parallelizer's workers as busy while the block runs."""
        workers = min(parallelizer.parallelism, pieces)
        self._recorder.workers(operation, workers)
        try:
            yield
        finally:
            self._recorder.workers(operation, -workers)

    def counter(self, point: MeasuredPoint, plugins: Sequence[str]) -> Callable[[int], None]:
        """Return a function that records so many evaluations of each of these plugins.

        It is for those whose hooks weren't called.
        """
        return self._evaluations.counter_of_all(point, tuple(plugins))

    def ended(self, point: MeasuredPoint, code: Code, started: float) -> None:
        """Record that the plugins of a point ran for a pod since `started`."""
        self._recorder.extension_point(point, code, self._profile, self.now() - started)
        if not self._evaluations.is_read:
            self._evaluations.tell_of(point)
        # Once for a pod, if the recorder asks for the counts when it is read.
        elif point is MeasuredPoint.FILTER:
            self._evaluations.report()

    def _timed(self, plugin: str, point: MeasuredPoint, hook: Hook) -> Hook:
        now, record = self.now, self._recorder.plugin_execution

        def timed(*arguments: Any) -> Any:
            started = now()
            try:
                answer = hook(*arguments)
            except HOOK_FAILURES:
                record(plugin, point, Code.ERROR, now() - started)
                raise
            record(plugin, point, _code(answer), now() - started)
            return answer

        return timed

    def _sampled_without_state(self, hook: Hook, timed: Hook) -> Hook:
        sampling = self._sampling
        if sampling is None:
            return hook
        return lambda *arguments: timed(*arguments) if sampling() else hook(*arguments)

    def _evaluated(self, plugin: str, point: MeasuredPoint, hook: Hook) -> Hook:
        count = self._evaluations.counter(plugin, point)

        def evaluated(*arguments: Any) -> Any:
            answer = hook(*arguments)
            if not (isinstance(answer, Status) and answer.is_skip):
                count(1)
            return answer

        return evaluated

    def _evaluated_per_node(self, plugin: str, point: MeasuredPoint, hook: Hook, timed: Hook) -> Hook:
        count = self._evaluations.counter(plugin, point)

        # One function for counting and sampling, with its arguments spelt out: it runs once per node and plugin.
        def evaluated(state: CycleState, pod: object, node_info: object) -> Any:
            count(1)
            return (timed if state.record_plugin_metrics else hook)(state, pod, node_info)

        return evaluated

    def _evaluated_in_batch(self, plugin: str, point: MeasuredPoint, hook: Hook) -> Hook:
        count = self._evaluations.counter(plugin, point)

        def evaluated(state: CycleState, pod: object, nodes: object, rows: Sequence[int]) -> Any:
            answer = hook(state, pod, nodes, rows)
            if answer is not None:
                count(len(rows))
            return answer

        return evaluated


_MOST_CYCLES: Final = 1000
"""The number of reports after which counts are passed on, even if nobody reads them."""


@define(eq=False)
class _Evaluations:
    """Counts calls of plugins and reports many at once, since calling a recorder costs more than most filters."""

    _recorder: MetricsRecorder
    _profile: str
    _counts: dict[MeasuredPoint, dict[Sequence[str], list[int]]] = attrs.field(
        factory=lambda: {point: {} for point in MeasuredPoint}, init=False
    )
    """The counts by point, and by the plugins for each of which they count."""
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    is_read: bool = attrs.field(init=False)
    """True if the recorder asks for the counts when it is read."""
    _unreported: int = attrs.field(default=0, init=False)

    @is_read.default
    def _asks(self) -> bool:
        return self._recorder.before_reading(self.tell)

    def counter(self, plugin: str, point: MeasuredPoint) -> Callable[[int], None]:
        """Return a function that adds to the count of a plugin's evaluations; may be called from several threads."""
        # An append is atomic, with or without a global interpreter lock; adding to a number isn't.
        return self._counts[point].setdefault((plugin,), []).append

    def counter_of_all(self, point: MeasuredPoint, plugins: Sequence[str]) -> Callable[[int], None]:
        """Return a function that adds to the count of each of these plugins' evaluations."""
        if self.is_read:
            return self._counts[point].setdefault(plugins, []).append
        tell, profile = self._recorder.plugin_evaluations, self._profile

        def tell_at_once(number: int) -> None:
            if number:
                for plugin in plugins:
                    tell(plugin, point, profile, number)

        return tell_at_once

    def report(self) -> None:
        """Pass the counts on to the recorder, unless it asks for them itself."""
        if self.is_read and self._unreported < _MOST_CYCLES:
            self._unreported += 1
        else:
            self.tell()

    def tell(self) -> None:
        """Pass the counts on to the recorder."""
        self._unreported = 0
        for point in self._counts:
            self.tell_of(point)

    def tell_of(self, point: MeasuredPoint) -> None:
        """Pass the counts of a point on to the recorder."""
        # Most hooks aren't called for most pods, so that their counts are empty.
        if not any(tuple(self._counts[point].values())):
            return
        tell, profile = self._recorder.plugin_evaluations, self._profile
        with self._lock:
            # Entries are added by the thread that schedules, while another one may read.
            for plugins, counts in tuple(self._counts[point].items()):
                if counts and (number := sum(_taken(counts))):
                    for plugin in plugins:
                        tell(plugin, point, profile, number)


def _taken(counts: list[T]) -> Sequence[T]:
    """Empty the list and return what was in it, while other threads append."""
    # The length first: only the entries that are returned are removed.
    taken = counts[: len(counts)]
    del counts[: len(taken)]
    return taken


def _sampled(hook: Hook, timed: Hook) -> Hook:
    """Return a hook that calls the timed form in sampled cycles; for hooks whose first argument is the state."""

    def sampled(state: CycleState, *arguments: Any) -> Any:
        return (timed if state.record_plugin_metrics else hook)(state, *arguments)

    return sampled


def _outcome(answer: object) -> Code:
    """Return the code in a framework method's result: a status, a tuple with one, or a list of failures."""
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, tuple):
        return next(item.code for item in answer if isinstance(item, Status))
    return Code.ERROR if answer else Code.SUCCESS


def _code(answer: object) -> Code:
    """Return the code of a hook's result."""
    match answer:
        case Status():
            return answer.code
        case None | int() | np.integer() | np.ndarray() | Verdicts():
            return Code.SUCCESS
        case PreBindPreFlightResult(skip=True):
            return Code.SKIP
        case PreFilterResult() | PreBindPreFlightResult():
            return Code.SUCCESS
        case (_, None | Status() as status):
            return Code.SUCCESS if status is None else status.code
        case [] | [GroupPlacement(), *_]:
            return Code.SUCCESS
    return Code.ERROR
