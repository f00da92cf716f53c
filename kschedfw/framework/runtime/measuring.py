"""Measures a framework's extension points and plugins for a recorder.

A framework without a recorder has no `Meter`, and calls its hooks and methods as if this module weren't there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from kschedfw.framework.clock import Clock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.metrics import MeasuredPoint, MetricsRecorder, Operation, PluginSampling, listens
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.results import PreBindPreFlightResult, PreFilterResult, Verdicts
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.status import Code, Status

T = TypeVar("T")

POINT_OF_METHOD: Final[Mapping[str, MeasuredPoint]] = {
    "run_pre_enqueue_plugins": MeasuredPoint.PRE_ENQUEUE,
    "run_pre_filter_plugins": MeasuredPoint.PRE_FILTER,
    "run_post_filter_plugins": MeasuredPoint.POST_FILTER,
    "run_pre_score_plugins": MeasuredPoint.PRE_SCORE,
    "run_score_plugins": MeasuredPoint.SCORE,
    "total_scores": MeasuredPoint.SCORE,
    "run_reserve_plugins_reserve": MeasuredPoint.RESERVE,
    "run_reserve_plugins_unreserve": MeasuredPoint.UNRESERVE,
    "run_permit_plugins": MeasuredPoint.PERMIT,
    "run_pre_bind_pre_flights": MeasuredPoint.PRE_BIND_PRE_FLIGHT,
    "run_pre_bind_plugins": MeasuredPoint.PRE_BIND,
    "run_bind_plugins": MeasuredPoint.BIND,
    "run_post_bind_plugins": MeasuredPoint.POST_BIND,
}
"""The framework's methods that run an extension point once for a pod. `filter_nodes` does so for FILTER."""

NODE_METHODS: Final = (
    "run_filter_plugins",
    "run_each_filter_plugin",
    "run_filter_plugins_with_nominated_pods",
)
"""The framework's methods that ask the filters about a single node."""


class Hooks(Protocol):
    """The hooks of a profile, as `HookTable` has them."""

    def __getitem__(self, hook: str) -> tuple[tuple[str, Hook], ...]:
        """(plugin name, callable) in profile order."""
        ...

    def at(self, point: ExtensionPoint) -> tuple[str, ...]:
        """The plugins that take part in the point, in order."""
        ...


class Meter:
    """Times what one framework runs and tells a recorder. Thread-safe."""

    def __init__(
        self, recorder: MetricsRecorder, clock: Clock, profile: str, sampling: PluginSampling | None
    ) -> None:
        self._recorder = recorder
        self._profile = profile
        self._sampling = sampling
        self._evaluations = _Evaluations(recorder, profile)
        self.now = clock.monotonic

    @classmethod
    def for_recorder(
        cls, recorder: MetricsRecorder, clock: Clock, profile: str, sampling: PluginSampling | None
    ) -> Meter | None:
        """None if nobody listens."""
        return cls(recorder, clock, profile, sampling) if listens(recorder) else None

    def attach(self, framework: object) -> None:
        """Put the measured form of its methods in the place of a framework's own."""
        for name, point in POINT_OF_METHOD.items():
            setattr(framework, name, self._measured_point(point, getattr(framework, name)))
        for name in NODE_METHODS:
            setattr(framework, name, self._counted(getattr(framework, name)))

    def hooks(self, hooks: Hooks) -> Hooks:
        """The same hooks, measured."""
        return _MeasuredHooks(
            hooks,
            {
                spec.name: tuple(
                    (plugin, self._measured_hook(spec.name, spec.measured, plugin, hook))
                    for plugin, hook in hooks[spec.name]
                )
                for spec in HOOKS.values()
                if spec.measured is not None
            },
        )

    @contextmanager
    def working(self, operation: Operation, parallelizer: Parallelizer, pieces: int) -> Iterator[None]:
        """While the parallelizer works on so many pieces, its workers are busy with the operation."""
        workers = min(parallelizer.parallelism, pieces)
        self._recorder.workers(operation, workers)
        try:
            yield
        finally:
            self._recorder.workers(operation, -workers)

    def filtered(self, started: float, *, failed: bool) -> None:
        """The nodes of a cycle were filtered, since `started`."""
        self._tell(MeasuredPoint.FILTER, Code.ERROR if failed else Code.SUCCESS, started)

    def _measured_point(self, point: MeasuredPoint, method: Callable[..., T]) -> Callable[..., T]:
        def measured(*arguments: Any, **keywords: Any) -> T:
            started = self.now()
            answer = method(*arguments, **keywords)
            self._tell(point, _outcome(answer), started)
            return answer

        return measured

    def _counted(self, method: Callable[..., T]) -> Callable[..., T]:
        def counted(*arguments: Any, **keywords: Any) -> T:
            answer = method(*arguments, **keywords)
            self._evaluations.tell()
            return answer

        return counted

    def _tell(self, point: MeasuredPoint, code: Code, started: float) -> None:
        self._recorder.extension_point(point, code, self._profile, self.now() - started)
        self._evaluations.tell()

    def _measured_hook(self, name: str, point: MeasuredPoint, plugin: str, hook: Hook) -> Hook:
        timed = self._timed(plugin, point, hook)
        match name:
            case "pre_enqueue":
                return self._sampled_without_state(hook, timed)
            case "pre_filter" | "pre_score":
                return self._evaluated(plugin, point, _sampled(hook, timed))
            case "filter" | "score":
                return self._evaluated_per_node(plugin, point, hook, timed)
            case "filter_batch" | "score_batch":
                return self._evaluated_in_batch(plugin, point, _sampled(hook, timed))
        return _sampled(hook, timed)

    def _timed(self, plugin: str, point: MeasuredPoint, hook: Hook) -> Hook:
        now, tell = self.now, self._recorder.plugin_execution

        def timed(*arguments: Any) -> Any:
            started = now()
            try:
                answer = hook(*arguments)
            except HOOK_FAILURES:
                tell(plugin, point, Code.ERROR, now() - started)
                raise
            tell(plugin, point, _code(answer), now() - started)
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


class _MeasuredHooks:
    """Hooks, with the measured form of some in their place."""

    def __init__(self, hooks: Hooks, measured: Mapping[str, tuple[tuple[str, Hook], ...]]) -> None:
        self._hooks = hooks
        self._measured = measured

    def __getitem__(self, hook: str) -> tuple[tuple[str, Hook], ...]:
        measured = self._measured.get(hook)
        return self._hooks[hook] if measured is None else measured

    def at(self, point: ExtensionPoint) -> tuple[str, ...]:
        return self._hooks.at(point)


class _Evaluations:
    """Counts how often plugins were asked, and tells it in lots: a recorder costs more than most filters."""

    def __init__(self, recorder: MetricsRecorder, profile: str) -> None:
        self._recorder = recorder
        self._profile = profile
        self._lots: dict[tuple[str, MeasuredPoint], list[int]] = {}
        self._lock = threading.Lock()

    def counter(self, plugin: str, point: MeasuredPoint) -> Callable[[int], None]:
        """A function that notes so many evaluations; may be called from several threads."""
        # An append is atomic, with or without a global interpreter lock; adding to a number isn't.
        return self._lots.setdefault((plugin, point), []).append

    def tell(self) -> None:
        """Pass on what was noted until now."""
        with self._lock:
            for (plugin, point), lot in self._lots.items():
                if noted := len(lot):
                    self._recorder.plugin_evaluations(plugin, point, self._profile, sum(lot[:noted]))
                    del lot[:noted]


def _sampled(hook: Hook, timed: Hook) -> Hook:
    """The timed form in the cycles of the sample, else the hook itself; for hooks whose first argument is the state."""

    def sampled(state: CycleState, *arguments: Any) -> Any:
        return (timed if state.record_plugin_metrics else hook)(state, *arguments)

    return sampled


def _outcome(answer: object) -> Code:
    """The code in what a method of the framework returned: a status, a tuple with one, or a list of failures."""
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, tuple):
        return next(item.code for item in answer if isinstance(item, Status))
    return Code.ERROR if answer else Code.SUCCESS


def _code(answer: object) -> Code:
    """The code of what a hook returned."""
    match answer:
        case Status():
            return answer.code
        case None | int() | np.integer() | np.ndarray() | Verdicts():
            return Code.SUCCESS
        case PreFilterResult() | PreBindPreFlightResult():
            return Code.SUCCESS
        case (_, None | Status() as status):
            return Code.SUCCESS if status is None else status.code
    return Code.ERROR
