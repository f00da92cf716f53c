"""A log of the time of each step of slow attempts, as kube-scheduler up to v1.21 traced its `Schedule`.

An attempt's search for a node is cut into steps: the extension points, and the time between them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from kschedfw import Clock, Code, CycleState, Framework, MeasuredPoint, Pod, ScheduleResult, format_duration
from kschedfw.scheduler import Algorithm, Structured
from kschedfw_kubernetes.prometheus_metrics import PrometheusMetrics

_log = logging.getLogger(__name__)

SLOW: Final = 0.1
"""Seconds from which on an attempt is slow."""
_WORTH_TELLING: Final = 0.001
"""Seconds that a step must take to be told."""

_STEP_BEFORE: Final = {
    MeasuredPoint.PRE_FILTER: "Snapshot",
    MeasuredPoint.FILTER: "Selecting nodes",
    MeasuredPoint.PRE_SCORE: "Extenders",
    MeasuredPoint.POST_FILTER: "Extenders",
    MeasuredPoint.SCORE: "Preparing scores",
}
"""What lies before an extension point, of those that belong to the search for a node."""
_LAST_STEP: Final = "Choosing the node"


class TracingMetrics(PrometheusMetrics):
    """Metrics that also log slow attempts. Give it `following` the scheduler's algorithm.

    Raises:
        MissingExtraError: on import of this module, where prometheus-client isn't installed.
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
        if (before := _STEP_BEFORE.get(point)) is not None:  # no other thread tells of these
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
            # In the order of the decisions; of the bindings, which end in another one, each has a line of its own.
            _log.debug(Structured("Attempting to schedule pod", pod=pod.key))
        self._metrics.begin(pod)
        return self._algorithm.schedule(framework, state, pod)


def _milliseconds(seconds: float) -> str:
    return format_duration(round(seconds, 3))
