"""The interface through which the scheduler reports metrics (kube-scheduler `pkg/scheduler/metrics`).

Implement `MetricsRecorder` to receive them, as `kschedfw_kubernetes.prometheus_metrics` does for Prometheus.
The default recorder is a no-op, and with it nothing is measured.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from random import Random
from typing import Final, Protocol

import attrs

from kschedfw.api.extensions import Extensions
from kschedfw.api.records import define, frozen
from kschedfw.framework.plugin_metrics import MetricKind, PluginMetric, RecordValue
from kschedfw.framework.status import Code

# kube-scheduler's `pluginMetricsSamplePercent`.
PLUGIN_METRICS_PERCENT: Final = 10
"""The percentage of cycles in which the durations of single plugins are measured."""


class AttemptResult(StrEnum):
    """The end of an attempt to schedule a pod."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class MeasuredPoint(StrEnum):
    """The points that durations are recorded for; finer than `ExtensionPoint`, at which plugins are enabled."""

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
    PLACEMENT_GENERATE = "PlacementGenerate"
    PLACEMENT_FEASIBLE = "PlacementFeasible"
    PLACEMENT_SCORE = "PlacementScore"
    POD_GROUP_POST_FILTER = "PodGroupPostFilter"


class CachedObject(StrEnum):
    """The kinds of objects that the cache counts."""

    NODES = "nodes"
    PODS = "pods"
    ASSUMED_PODS = "assumed_pods"


class Operation(StrEnum):
    """Work that several workers do at once."""

    FILTER = "Filter"
    SCORE = "Score"
    BINDING = "binding"
    PRIORITIZING_EXTENDER = "prioritizing_extender"


class HintResult(StrEnum):
    """The answer of a plugin's hint function."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"
    ERROR = "Error"


class BatchAttempt(StrEnum):
    """The end of an attempt to reuse the search of the pod before (OpportunisticBatching)."""

    NO_HINT = "no_hint"
    HINT_USED = "hint_used"
    HINT_NOT_USED = "hint_not_used"


class BatchFlush(StrEnum):
    """The reason why a search can't be reused (OpportunisticBatching); kube-scheduler's `pod_failed` never happens."""

    POD_SKIPPED = "pod_skipped"
    """The pod of the preceding cycle got no node from this profile."""
    NODE_MISSING = "node_missing"
    """The node of the preceding pod is gone."""
    NODE_NOT_FULL = "node_not_full"
    """The pod would fit on the node of the preceding pod."""
    EMPTY_LIST = "empty_list"
    """A single node was feasible."""
    EXPIRED = "expired"
    POD_INCOMPATIBLE = "pod_incompatible"
    """The pod differs from the one that was searched for, or can't be signed."""
    POD_NOT_BATCHABLE = "pod_not_batchable"
    """The pod that was searched for can't be signed."""
    POD_NOMINATED = "pod_nominated"
    """The pod is nominated to a node (since v1.37)."""
    PRE_SCORE_ERROR = "prescore_error"
    """A pre_score failed while a node was scored again (since v1.37), and so the next two."""
    RESCORE_ERROR = "rescore_error"
    NORMALIZE_ERROR = "normalize_error"


class EntityKind(StrEnum):
    """The kinds of what the queue counts as one, and of what preempts, since v1.37."""

    POD = "pod"
    """A pod that is in no group."""
    GROUP = "podgroup"


class DevicePreparation(StrEnum):
    """The end of a wait for allocated devices to be prepared."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"
    """The wait ended without a fault of a device: the claim is gone, or the pod was preempted."""


class VolumeStage(StrEnum):
    """The stage at which scheduling a pod's volumes failed.

    A search for volumes doesn't fail: it only refuses nodes.
    """

    ASSUME = "assume"
    BIND = "bind"


class MetricsRecorder(Protocol):
    """A receiver of metrics. Called from any thread, also under locks: must be fast, and never block or raise.

    Durations are in seconds on the clock's monotonic scale, `change` is a difference to the last value, all
    other numbers are absolute. Derive from `NoMetrics` to receive only a few of them.
    """

    # Attempts, told by the scheduler

    def scheduling_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        """An attempt has ended. `seconds` are from the start of its scheduling cycle to its binding or failure."""
        return

    def scheduling_algorithm(self, seconds: float) -> None:
        """The scheduling algorithm has ended, with or without a node. `seconds` include preemption, but not assume."""
        return

    def group_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        """An attempt to schedule a group of pods has ended. `seconds` are from its start to the last member's place."""
        return

    def group_algorithm(self, seconds: float) -> None:
        """The algorithm for a group has ended; `scheduling_algorithm` is called for each member as well."""
        return

    def batch_attempt(self, result: BatchAttempt, profile: str) -> None:
        """The search of an earlier pod was reused or not. A hint counts when the pod gets a node."""
        return

    def batch_flushed(self, reason: BatchFlush, profile: str) -> None:
        """A kept search can't be reused for the pod, or the pod's own search can't be kept."""
        return

    def batch_rescored(self, profile: str, seconds: float) -> None:
        """The node of the preceding pod was scored again, since it isn't full, or a plugin failed at that."""
        return

    def node_hint(self, hinted: bool, profile: str, seconds: float) -> None:
        """The node of an earlier search was looked up for a pod; `hinted` tells whether there was one."""
        return

    def batch_stored(self, profile: str, seconds: float) -> None:
        """The result of a pod's search was stored for later pods."""
        return

    def pod_scheduled(self, attempts: int, seconds: float | None) -> None:
        """A pod was bound. `seconds` run from the start of its first attempt; None if that is unknown."""
        return

    def pod_scheduled_after_flush(self) -> None:
        """A pod was bound that had left the unschedulable pods because of its age, not because of an event."""
        return

    def cache_size(self, kind: CachedObject, count: int) -> None:
        """The cache has `count` objects of the kind."""
        return

    def workers(self, operation: Operation, change: int) -> None:
        """The number of workers busy with the operation has changed by `change`."""
        return

    def event_handled(self, event: str, seconds: float) -> None:
        """Cache and queue have handled a change in the cluster; `event` is its label, such as `NodeAdd`."""
        return

    # Plugins, told by the framework

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        """All plugins of an extension point have run for a pod; `code` is the outcome."""
        return

    def plugin_execution(self, plugin: str, point: MeasuredPoint, code: Code, seconds: float) -> None:
        """One plugin has run, in a sampled cycle."""
        return

    def plugin_evaluations(self, plugin: str, point: MeasuredPoint, profile: str, count: int) -> None:
        """A plugin was asked `count` times. Called for PRE_FILTER and PRE_SCORE (without skips), FILTER and SCORE.

        FILTER and SCORE count nodes. For a pod that is placed by its plan these are all nodes that were looked at, and
        all that were scored.
        """
        return

    def before_reading(self, tell: Callable[[], None]) -> bool:  # for recorders to override
        """Return whether this recorder calls `tell` before its values are read; False unless it is overridden.

        `tell` calls `plugin_evaluations` with what has been counted since its last call, or `pending_pods` or
        `cache_size` with the present numbers. It may be called from any thread. Without it the recorder is told of them
        for every pod, which costs more than most plugins. Called once by each framework, queue and scheduler.
        """
        return False

    def permit_wait(self, code: Code, seconds: float) -> None:
        """The wait of a pod at permit has ended: it was allowed, rejected, or timed out."""
        return

    def plugin_metric(self, metric: PluginMetric) -> RecordValue | None:
        """A plugin has defined a metric. Return the function that records its values, or None to drop them.

        Called when the plugin is made, once for each profile. Raises ValueError if another metric has the name.
        """
        return None

    # Preemption, told by its plugin

    def preemption_attempt(self) -> None:
        """A preemption is attempted."""
        return

    def preemption_victims(self, count: int) -> None:
        """Preemption has chosen a node; `count` pods are evicted from it."""
        return

    # Since v1.37, told where pods are scheduled in groups (GenericWorkload)

    def group_preemption_attempt(self, code: Code) -> None:
        """A group has tried to make room; `code` is the outcome."""
        return

    def group_preemption_victims(self, count: int) -> None:
        """`count` pods are evicted for a group; for a single pod it is `preemption_victims`."""
        return

    def preemption_evaluated(self, preemptor: EntityKind, code: Code, seconds: float) -> None:
        """The search for a group's victims has ended; `code` is the outcome."""
        return

    def preemption_carried_out(self, preemptor: EntityKind, success: bool, seconds: float) -> None:
        """All victims of a preemption have been evicted, or an eviction has failed."""
        return

    def groups_disrupted(self, preemptor: EntityKind, count: int) -> None:
        """A preemption evicts `count` groups as a whole, or single members of groups; not told of none."""
        return

    def budgets_violated(self, preemptor: EntityKind, count: int) -> None:
        """A preemption evicts `count` pods against disruption budgets; not told of none."""
        return

    # Devices, told by DynamicResources

    def claim_created(self, *, success: bool) -> None:
        """A claim for a pod's extended resources was made, or its creation failed."""
        return

    def devices_prepared(self, profile: str, driver: str, result: DevicePreparation, seconds: float) -> None:
        """A pod's wait for the driver's devices has ended with `result`."""
        return

    # Volumes, told by VolumeBinding

    def volume_stage_failed(self, stage: VolumeStage) -> None:
        """Reserving a pod's volumes or binding them has failed."""
        return

    # Queue, told by the queue; its places are an enum of its own, which is a `str`

    def pending_pods(self, queue: str, count: int) -> None:
        """The number of pods in a part of the queue: `active`, `backoff`, `unschedulable` or `gated`.

        Since v1.37 there are two more for members of groups: `incomplete` without their PodGroup, and `pending` during
        the group's cycle.
        """
        return

    def pod_incoming(self, queue: str, event: str) -> None:
        """A pod has moved into a part of the queue because of the event."""
        return

    def queued_entities(self, queue: str, kind: EntityKind, count: int) -> None:
        """The number of groups, or of pods without one, in a part of the queue (since v1.37)."""
        return

    def entity_incoming(self, queue: str, event: str, kind: EntityKind) -> None:
        """A group, or a pod without one, has moved into a part of the queue because of the event (since v1.37)."""
        return

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        """The number of queued pods that this plugin (maybe among others) has rejected has changed by `change`."""
        return

    def queueing_hint(self, plugin: str, event: str, result: HintResult, seconds: float) -> None:
        """A plugin's hint function was called for an event."""
        return

    def in_flight_events(self, event: str, change: int) -> None:
        """The number of events kept for pods in flight has changed by `change`."""
        return


class NoMetrics(MetricsRecorder):
    """No-op recorder. Measurement is disabled for this exact type; a derived class gets every call."""


NO_METRICS: Final[MetricsRecorder] = NoMetrics()


@frozen
class OfferedRecorder:
    """A recorder of metrics that commands take by name.

    An entry point of the group `kschedfw.recorders` has the name and refers to an OfferedRecorder. `make` is called
    once, before anything is measured; it may raise a `KschedfwError`, such as for a missing setting.
    """

    make: Callable[[], MetricsRecorder]


RECORDERS: Final = Extensions("kschedfw.recorders", "recorder of metrics", OfferedRecorder)


@define
class PluginSeries:
    """The values of a plugin's own metric for one combination of labels.

    `value` is the sum of a counter or a histogram, and the last number of a gauge. `count` is the number of
    recorded values. `buckets` has, for each bound of a histogram's buckets, the number of values that don't
    exceed it.
    """

    metric: PluginMetric
    labels: tuple[str, ...]
    value: float = 0.0
    count: int = 0
    buckets: list[int] = attrs.field(factory=list)

    def add(self, value: float) -> None:
        self.value = value if self.metric.kind is MetricKind.GAUGE else self.value + value
        self.count += 1
        for index, bound in enumerate(self.metric.buckets):
            self.buckets[index] += value <= bound

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "name": self.metric.name,
            "kind": self.metric.kind.value,
            "labels": dict(zip(self.metric.label_names, self.labels, strict=True)),
        }
        if self.metric.kind is not MetricKind.HISTOGRAM:
            return {**found, "value": self.value}
        bounds = [
            {"le": bound, "count": count}
            for bound, count in zip(self.metric.buckets, self.buckets, strict=True)
        ]
        return {**found, "sum": self.value, "count": self.count, "buckets": bounds}


class PluginTally(NoMetrics):
    """A recorder that sums up the metrics of plugins' own, and ignores all others."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, tuple[str, ...]], PluginSeries] = {}
        self._metrics: dict[str, PluginMetric] = {}
        self._lock = threading.Lock()
        self._is_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what plugins record in the block: explanations ask them again, which isn't part of a run."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def plugin_metric(self, metric: PluginMetric) -> RecordValue | None:
        # Plugins of several profiles define the same metric.
        if self._metrics.setdefault(metric.name, metric) != metric:
            raise ValueError(
                f"metric {metric.name!r}: there is another one of this name; give this one a name of its own"
            )

        def record(value: float, labels: tuple[str, ...]) -> None:
            if self._is_paused:
                return
            with self._lock:
                series = self._series.get((metric.name, labels))
                if series is None:
                    series = PluginSeries(metric, labels, buckets=[0] * len(metric.buckets))
                    self._series[metric.name, labels] = series
                series.add(value)

        return record

    def series(self) -> tuple[PluginSeries, ...]:
        """Return all series, by name and labels."""
        return tuple(series for _, series in sorted(self._series.items()))


class PluginTimes(PluginTally):
    """A recorder that also sums up how long each plugin's hooks take, in all cycles.

    `stopwatch` returns seconds. The scheduler's clock wouldn't do: in a simulation it stands still meanwhile.
    """

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        super().__init__()
        self.stopwatch = stopwatch
        self._seconds: dict[str, float] = {}
        self._times_lock = threading.Lock()

    def plugin_execution(self, plugin: str, point: MeasuredPoint, code: Code, seconds: float) -> None:
        if self._is_paused:
            return
        with self._times_lock:
            self._seconds[plugin] = self._seconds.get(plugin, 0.0) + seconds

    def seconds(self) -> Mapping[str, float]:
        """Return the seconds of each plugin that was called, the slowest first."""
        with self._times_lock:
            return dict(sorted(self._seconds.items(), key=lambda each: (-each[1], each[0])))


def listens(recorder: MetricsRecorder) -> bool:
    """Return whether the recorder receives anything but plugins' own metrics."""
    return type(recorder) not in (NoMetrics, PluginTally)


@define(eq=False)
class PluginSampling:
    """Samples the cycles in which single plugins are measured: measuring a call costs more than most hooks.

    `random` must be a generator of its own. With the one that breaks ties, decisions would depend on whether there is
    a recorder.
    """

    _random: Random
    _percent: int = PLUGIN_METRICS_PERCENT

    def __call__(self) -> bool:
        """Return whether the cycle that begins now is in the sample, for `CycleState.record_plugin_metrics`."""
        return self._random.random() * 100 < self._percent


def sampling_of(recorder: MetricsRecorder) -> PluginSampling | None:
    """Return in which cycles single plugins are measured for a recorder: all for `PluginTimes`; None where none is."""
    if not listens(recorder):
        return None
    # A generator of its own, so that measuring doesn't change decisions.
    return PluginSampling(Random(0), 100 if isinstance(recorder, PluginTimes) else PLUGIN_METRICS_PERCENT)
