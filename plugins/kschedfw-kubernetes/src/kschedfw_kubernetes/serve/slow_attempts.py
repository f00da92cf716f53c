"""Logs the duration of each step of slow attempts, as kube-scheduler up to v1.21 traced its `Schedule`.

The search for a node consists of these steps: the extension points, and the intervals between them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from kschedfw import Clock, Code, CycleState, Framework, Pod, ScheduleResult, format_duration
from kschedfw.metrics import MeasuredPoint
from kschedfw.scheduler import Algorithm, Structured
from kschedfw_kubernetes.prometheus_metrics import PrometheusMetrics

_log = logging.getLogger(__name__)

SLOW: Final = 0.1
"""The duration in seconds from which on an attempt is slow."""
_WORTH_TELLING: Final = 0.001
"""The least duration of a logged step, in seconds."""

_STEP_BEFORE: Final = {
    MeasuredPoint.PRE_FILTER: "Snapshot",
    MeasuredPoint.FILTER: "Selecting nodes",
    MeasuredPoint.PRE_SCORE: "Extenders",
    MeasuredPoint.POST_FILTER: "Extenders",
    MeasuredPoint.SCORE: "Preparing scores",
}
"""The name of the interval before an extension point, for extension points in the search for a node."""
_LAST_STEP: Final = "Choosing the node"


class TracingMetrics(PrometheusMetrics):
    """Metrics that also log slow attempts. Wrap the scheduler's algorithm by `following`.

    Raises:
        MissingExtraError: prometheus-client isn't installed; raised when this module is imported.
    """

    def __init__(self, clock: Clock, disabled: Collection[str] = ()) -> None:
        super().__init__(disabled)
        self._clock = clock
        self._pod: Pod | None = None
        self._started = self._until = 0.0
        self._steps: list[tuple[str, float]] = []

    def following(self, algorithm: Algorithm) -> Algorithm:
        """Return the algorithm, wrapped such that each search is attributed to its pod."""
        return _Followed(algorithm, self)

    def begin(self, pod: Pod) -> None:
        """Note that the search for a node begins, on the thread of the scheduling cycles."""
        self._pod = pod
        self._started = self._until = self._clock.monotonic()
        self._steps.clear()

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        super().extension_point(point, code, profile, seconds)
        if (before := _STEP_BEFORE.get(point)) is not None:
            # Only the thread of the scheduling cycles reports these points.
            now = self._clock.monotonic()
            self._add_step(before, now - seconds - self._until)
            self._add_step(str(point), seconds)
            self._until = now

    def scheduling_algorithm(self, seconds: float) -> None:
        super().scheduling_algorithm(seconds)
        now = self._clock.monotonic()
        if self._pod is not None and now - self._started >= SLOW:
            self._add_step(_LAST_STEP, now - self._until)
            steps = ", ".join(f"{name} {_milliseconds(took)}" for name, took in self._steps)
            total = _milliseconds(now - self._started)
            _log.info(Structured("Trace: slow scheduling", pod=self._pod.key, total=total, steps=steps))
        self._pod = None

    def _add_step(self, name: str, seconds: float) -> None:
        if seconds >= _WORTH_TELLING:
            self._steps.append((name, seconds))


class _Followed:
    def __init__(self, algorithm: Algorithm, metrics: TracingMetrics) -> None:
        self._algorithm = algorithm
        self._metrics = metrics

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        if _log.isEnabledFor(logging.DEBUG):
            # These lines are in the order of the decisions. Bindings may end in another order; each has a line of its
            # own.
            _log.debug(Structured("Attempting to schedule pod", pod=pod.key))
        self._metrics.begin(pod)
        return self._algorithm.schedule(framework, state, pod)


def _milliseconds(seconds: float) -> str:
    return format_duration(round(seconds, 3))
