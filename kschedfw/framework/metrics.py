"""What the scheduler tells about itself while it works (kube-scheduler `pkg/scheduler/metrics`).

Whoever wants to know implements `MetricsRecorder`; `kschedfw.scheduler.prometheus_metrics` does for Prometheus. By
default nobody listens, and then nothing is measured either.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import Final, Protocol

from kschedfw.framework.status import Code

PLUGIN_METRICS_PERCENT: Final = 10
"""Of how many cycles in a hundred the single plugins' durations are measured."""


class AttemptResult(StrEnum):
    """How an attempt to schedule a pod ended."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class MeasuredPoint(StrEnum):
    """What durations are told of; finer than `ExtensionPoint`, which is about enabling plugins."""

    PRE_ENQUEUE = "PreEnqueue"
    PRE_FILTER = "PreFilter"
    PRE_FILTER_ADD_POD = "PreFilterExtensionAddPod"
    PRE_FILTER_REMOVE_POD = "PreFilterExtensionRemovePod"
    FILTER = "Filter"
    POST_FILTER = "PostFilter"
    PRE_SCORE = "PreScore"
    SCORE = "Score"
    NORMALIZE_SCORE = "ScoreExtensionNormalize"
    RESERVE = "Reserve"
    UNRESERVE = "Unreserve"
    PERMIT = "Permit"
    PRE_BIND_PRE_FLIGHT = "PreBindPreFlight"
    PRE_BIND = "PreBind"
    BIND = "Bind"
    POST_BIND = "PostBind"


class CachedObject(StrEnum):
    """What the cache counts."""

    NODES = "nodes"
    PODS = "pods"
    ASSUMED_PODS = "assumed_pods"


class Operation(StrEnum):
    """What several workers do at the same time."""

    FILTER = "Filter"
    SCORE = "Score"
    BINDING = "binding"
    PRIORITIZING_EXTENDER = "prioritizing_extender"


class HintResult(StrEnum):
    """What came of asking a plugin whether an event is worth another attempt."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"
    ERROR = "Error"


class DevicePreparation(StrEnum):
    """How waiting for allocated devices to be prepared has ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"


class MetricsRecorder(Protocol):
    """Is told what happens. Called from any thread, some of it under locks: must be fast, never block, never raise.

    Durations are in seconds on the clock's monotonic scale, `change` is a difference to what was told before, all
    other numbers are absolute. Who wants to know a few things only derives from `NoMetrics`.
    """

    # Attempts, told by the scheduler

    def scheduling_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        """An attempt has ended; from the begin of its scheduling cycle to the end of binding, or to the failure."""
        ...

    def scheduling_algorithm(self, seconds: float) -> None:
        """A node was looked for, found or not; preemption included, assume and what follows not."""
        ...

    def pod_scheduled(self, attempts: int, seconds: float | None) -> None:
        """A pod was bound after so many attempts, and that long after the first began, if that is known."""
        ...

    def pod_scheduled_after_flush(self) -> None:
        """A pod was bound that no event, but only its age, had brought back from the unschedulable ones."""
        ...

    def cache_size(self, kind: CachedObject, count: int) -> None:
        """So many objects are in the cache."""
        ...

    def workers(self, operation: Operation, change: int) -> None:
        """So many workers more (or, if negative, less) are at work on the operation."""
        ...

    def event_handled(self, event: str, seconds: float) -> None:
        """Cache and queue have been told of a change in the cluster; the event's label is e.g. `NodeAdd`."""
        ...

    # Plugins, told by the framework

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        """All plugins of a point have run for a pod, with this outcome."""
        ...

    def plugin_execution(self, plugin: str, point: MeasuredPoint, code: Code, seconds: float) -> None:
        """One plugin has run, in a cycle that is in the sample."""
        ...

    def plugin_evaluations(self, plugin: str, point: MeasuredPoint, profile: str, count: int) -> None:
        """A plugin was asked `count` times more; PRE_FILTER and PRE_SCORE (a skip doesn't count), FILTER and SCORE."""
        ...

    def permit_wait(self, code: Code, seconds: float) -> None:
        """A pod that a permit plugin held was allowed, rejected or timed out."""
        ...

    # Preemption, told by its plugin

    def preemption_attempt(self) -> None:
        """Room is looked for by preempting others."""
        ...

    def preemption_victims(self, count: int) -> None:
        """A node was chosen, with so many pods to evict from it."""
        ...

    # Devices, told by DynamicResources

    def claim_created(self, *, success: bool) -> None:
        """A claim for a pod's extended resources was made, or couldn't be."""
        ...

    def devices_prepared(self, profile: str, driver: str, result: DevicePreparation, seconds: float) -> None:
        """A pod waited until the driver's devices were prepared, or in vain."""
        ...

    # Queue, told by the queue; its places are an enum of its own, which is a `str`

    def pending_pods(self, queue: str, count: int) -> None:
        """So many pods are `active`, `backoff`, `unschedulable` or `gated`."""
        ...

    def pod_incoming(self, queue: str, event: str) -> None:
        """A pod was put into a part of the queue because of the event."""
        ...

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        """So many more (or less) of the pods in the queue were rejected by the plugin, alone or among others."""
        ...

    def queueing_hint(self, plugin: str, event: str, result: HintResult, seconds: float) -> None:
        """A plugin's hint function was asked about an event."""
        ...

    def in_flight_events(self, event: str, change: int) -> None:
        """So many more (or less) events are kept for pods in flight."""
        ...


class NoMetrics:
    """Tells nobody. With exactly this class the framework doesn't measure; a derived one gets everything."""

    def scheduling_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        pass

    def scheduling_algorithm(self, seconds: float) -> None:
        pass

    def pod_scheduled(self, attempts: int, seconds: float | None) -> None:
        pass

    def pod_scheduled_after_flush(self) -> None:
        pass

    def cache_size(self, kind: CachedObject, count: int) -> None:
        pass

    def workers(self, operation: Operation, change: int) -> None:
        pass

    def event_handled(self, event: str, seconds: float) -> None:
        pass

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        pass

    def plugin_execution(self, plugin: str, point: MeasuredPoint, code: Code, seconds: float) -> None:
        pass

    def plugin_evaluations(self, plugin: str, point: MeasuredPoint, profile: str, count: int) -> None:
        pass

    def permit_wait(self, code: Code, seconds: float) -> None:
        pass

    def preemption_attempt(self) -> None:
        pass

    def preemption_victims(self, count: int) -> None:
        pass

    def claim_created(self, *, success: bool) -> None:
        pass

    def devices_prepared(self, profile: str, driver: str, result: DevicePreparation, seconds: float) -> None:
        pass

    def pending_pods(self, queue: str, count: int) -> None:
        pass

    def pod_incoming(self, queue: str, event: str) -> None:
        pass

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        pass

    def queueing_hint(self, plugin: str, event: str, result: HintResult, seconds: float) -> None:
        pass

    def in_flight_events(self, event: str, change: int) -> None:
        pass


NO_METRICS: Final[MetricsRecorder] = NoMetrics()


def listens(recorder: MetricsRecorder) -> bool:
    """Whether what is told to the recorder reaches anybody, and so is worth finding out."""
    return type(recorder) is not NoMetrics


class PluginSampling:
    """Draws the cycles in which single plugins are measured, since measuring every call would cost more than most.

    Give it a generator of its own: drawing from the one that breaks ties would make decisions depend on
    whether somebody measures.
    """

    def __init__(self, random: Random, percent: int = PLUGIN_METRICS_PERCENT) -> None:
        self._random = random
        self._percent = percent

    def __call__(self) -> bool:
        """Whether the cycle that begins now is in the sample; goes into `CycleState.record_plugin_metrics`."""
        return self._random.randrange(100) < self._percent
