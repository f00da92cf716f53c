"""The scheduler's metrics for Prometheus, under kube-scheduler v1.36's names, labels and buckets.

Needs the extra `metrics`; nothing else in the package imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import attrs

from kschedfw import Code
from kschedfw.api import how_to_install
from kschedfw.metrics import (
    AttemptResult,
    BatchAttempt,
    BatchFlush,
    CachedObject,
    DevicePreparation,
    EntityKind,
    HintResult,
    MeasuredPoint,
    MetricKind,
    Operation,
    PluginMetric,
    VolumeStage,
)
from kschedfw.scheduler import MissingExtraError

try:
    import prometheus_client
    from prometheus_client import CollectorRegistry, generate_latest

    from kschedfw_kubernetes.series import Counter, Gauge, Histogram
except ImportError as error:
    raise MissingExtraError(
        "Prometheus metrics need prometheus-client; install it with: "
        f"{how_to_install('kschedfw-kubernetes', 'metrics')}"
    ) from error

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.metrics import MetricWrapperBase

MetricT = TypeVar("MetricT", bound="MetricWrapperBase")
_Record: TypeAlias = Callable[[float, tuple[str, ...]], None]
"""Records a value of a plugin's own metric, for these values of its labels."""

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `PrometheusMetrics.exposition`."""

MAX_ATTEMPTS_LABEL: Final = 15
"""The highest number of attempts with a series of its own. Pods with more attempts are counted in that series."""

_CODES: Final = {code: str(code) for code in Code}


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the upper bounds of buckets, each `factor` times the one before. The library adds +Inf."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        # Multiplied step by step as in client_golang, so that the bounds are rounded equally.
        start *= factor
    return tuple(bounds)


ATTEMPT_SECONDS: Final = exponential(0.001, 2, 15)
HINT_SECONDS: Final = exponential(0.00001, 2, 12)
POD_SECONDS: Final = exponential(0.01, 2, 20)
POINT_SECONDS: Final = exponential(0.0001, 2, 12)
PLUGIN_SECONDS: Final = exponential(0.00001, 1.5, 20)
ATTEMPTS: Final = exponential(1, 2, 5)
PREPARATION_SECONDS: Final = exponential(0.1, 2, 14)
VICTIMS: Final = exponential(1, 2, 7)
GROUP_VICTIMS: Final = exponential(1, 2, 11)
PREEMPTION_SECONDS: Final = exponential(0.001, 2, 16)


class Registry(CollectorRegistry):
    """A registry that leaves out the metrics in `disabled`, by their exposed names.

    It also leaves out the creation times that prometheus-client adds, which come from the wall clock.
    """

    def __init__(self, disabled: Collection[str] = ()) -> None:
        super().__init__()
        self._disabled = frozenset(disabled)
        self.before_collecting: list[Callable[[], None]] = []
        """Functions that bring the metrics up to date. Counting costs less than an increment, which takes a lock."""

    def collect(self) -> Iterable[Metric]:
        for bring_up_to_date in self.before_collecting:
            bring_up_to_date()
        for metric in super().collect():
            exposed = f"{metric.name}_total" if metric.type == "counter" else metric.name
            if exposed in self._disabled:
                continue
            created = f"{metric.name}_created"
            metric.samples = [sample for sample in metric.samples if sample.name != created]
            yield metric


@attrs.frozen
class _Maker:
    """Creates metrics of the subsystem `scheduler` in one registry."""

    registry: CollectorRegistry

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"scheduler_{name}", text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"scheduler_{name}", text, labels, registry=self.registry)

    def histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(f"scheduler_{name}", text, labels, buckets=buckets, registry=self.registry)


class PrometheusMetrics:
    """A `MetricsRecorder` with a registry of its own, so that one process can have several schedulers.

    Serve `exposition()` over HTTP, or pass `registry` to prometheus-client's own servers. As in kube-scheduler, a
    series with labels appears with its first observation. Metrics whose names are in `disabled` are left out.

    Raises:
        MissingExtraError: prometheus-client isn't installed; raised when this module is imported.
    """

    def __init__(self, disabled: Collection[str] = ()) -> None:
        self.registry = Registry(disabled)
        make = _Maker(self.registry)
        self._make_attempts(make)
        self._make_plugins(make)
        self._make_batching(make)
        self._make_preemption(make)
        self._make_devices(make)
        self._volume_failures = make.counter(
            "volume_scheduling_stage_error_total",
            "Failures to reserve a pod's volumes (assume) or to bind them (bind).",
            "operation",
        )
        self._make_queue(make)
        self._own: dict[str, tuple[PluginMetric, _Record]] = {}

    def _make_attempts(self, make: _Maker) -> None:
        self._attempts = make.counter(
            "schedule_attempts_total",
            "Attempts to schedule a pod: scheduled, unschedulable (it fits nowhere) or error (something failed).",
            "result",
            "profile",
        )
        self._attempt_seconds = make.histogram(
            "scheduling_attempt_duration_seconds",
            "How long attempts to schedule a pod take, from the scheduling cycle to the end of binding.",
            ATTEMPT_SECONDS,
            "result",
            "profile",
        )
        self._algorithm_seconds = make.histogram(
            "scheduling_algorithm_duration_seconds",
            "How long it takes to look for a node, preemption included.",
            ATTEMPT_SECONDS,
        )
        self._group_attempts = make.counter(
            "podgroup_schedule_attempts_total",
            "Attempts to schedule a group of pods: scheduled, unschedulable or error.",
            "result",
            "profile",
        )
        self._group_seconds = make.histogram(
            "podgroup_scheduling_attempt_duration_seconds",
            "How long attempts to schedule a group of pods take, until all members have their places.",
            ATTEMPT_SECONDS,
            "result",
            "profile",
        )
        self._group_algorithm_seconds = make.histogram(
            "podgroup_scheduling_algorithm_duration_seconds",
            "How long it takes to look for nodes for a group of pods, preemption included.",
            ATTEMPT_SECONDS,
        )
        self._pod_attempts = make.histogram(
            "pod_scheduling_attempts", "Attempts that pods needed until they were bound.", ATTEMPTS
        )
        self._pod_seconds = make.histogram(
            "pod_scheduling_sli_duration_seconds",
            "Time from a pod's first attempt until it was bound, by the number of attempts.",
            POD_SECONDS,
            "attempts",
        )
        self._after_flush = make.counter(
            "pod_scheduled_after_flush_total",
            "Pods bound after they were retried only because they had been unschedulable for very long; "
            "if there are many, a plugin's queueing hints or events are wrong.",
        )
        self._preemption_attempts = make.counter(
            "preemption_attempts_total", "Attempts to make room by preemption."
        )
        self._preemption_victims = make.histogram(
            "preemption_victims", "Pods chosen to be evicted, per preemption.", VICTIMS
        )
        self._cache_size = make.gauge(
            "cache_size", "Nodes, pods and assumed pods in the scheduler's cache.", "type"
        )
        self._workers = make.gauge(
            "goroutines", "Workers that are busy, by what they are busy with.", "operation"
        )
        self._event_seconds = make.histogram(
            "event_handling_duration_seconds",
            "How long it takes to tell cache and queue of an event.",
            POINT_SECONDS,
            "event",
        )

    def _make_plugins(self, make: _Maker) -> None:
        self._point_seconds = make.histogram(
            "framework_extension_point_duration_seconds",
            "How long all plugins of an extension point take for a pod.",
            POINT_SECONDS,
            "extension_point",
            "status",
            "profile",
        )
        self._plugin_seconds = make.histogram(
            "plugin_execution_duration_seconds",
            "How long a plugin takes at an extension point, in a sample of the scheduling cycles.",
            PLUGIN_SECONDS,
            "plugin",
            "extension_point",
            "status",
        )
        self._evaluations = make.counter(
            "plugin_evaluation_total",
            "How often a plugin was asked (PreFilter, Filter, PreScore and Score only).",
            "plugin",
            "extension_point",
            "profile",
        )
        self._permit_seconds = make.histogram(
            "permit_wait_duration_seconds", "How long pods wait on permit.", ATTEMPT_SECONDS, "result"
        )

    def _make_batching(self, make: _Maker) -> None:
        self._batch_attempts = make.counter(
            "batch_attempts_total",
            "Pods for which an earlier search was reused (hint_used), in vain (hint_not_used), or not (no_hint).",
            "profile",
            "result",
        )
        self._batch_flushes = make.counter(
            "batch_cache_flushed_total",
            "Searches that can't be reused, by the reason.",
            "profile",
            "reason",
        )
        self._rescored = make.counter(
            "batch_rescore_attempts_total",
            "How often the node of the pod before was scored again, to reuse its search (since v1.37).",
            "profile",
        )
        self._rescore_seconds = make.histogram(
            "batch_rescore_duration_seconds",
            "How long it takes to score the node of the pod before again.",
            HINT_SECONDS,
            "profile",
        )
        self._node_hint_seconds = make.histogram(
            "get_node_hint_duration_seconds",
            "How long it takes to find the node that an earlier search has left for a pod.",
            HINT_SECONDS,
            "hinted",
            "profile",
        )
        self._store_seconds = make.histogram(
            "store_schedule_results_duration_seconds",
            "How long it takes to keep a search for later pods.",
            HINT_SECONDS,
            "profile",
        )

    def _make_preemption(self, make: _Maker) -> None:
        self._group_preemptions = make.counter(
            "workload_preemption_attempts_total", "Attempts of groups to make room by preemption.", "result"
        )
        self._group_preemption_victims = make.histogram(
            "workload_preemption_victims",
            "Pods chosen to be evicted, per preemption by a group.",
            GROUP_VICTIMS,
        )
        self._disruptions = make.histogram(
            "preemption_workload_disruptions",
            "Groups that a preemption evicts as a whole, and single members of groups.",
            GROUP_VICTIMS,
            "preemptor",
        )
        self._evaluation_seconds = make.histogram(
            "preemption_evaluation_duration_seconds",
            "How long it takes to find the victims of a preemption.",
            PREEMPTION_SECONDS,
            *("preemptor", "result"),
        )
        self._execution_seconds = make.histogram(
            "preemption_execution_duration_seconds",
            "How long it takes to evict the victims of a preemption.",
            PREEMPTION_SECONDS,
            *("preemptor", "result"),
        )
        self._violations = make.counter(
            "preemption_pdb_violations_total", "Pods evicted against disruption budgets.", "preemptor"
        )

    def _make_devices(self, make: _Maker) -> None:
        self._claims_created = make.counter(
            "resourceclaim_creates_total", "Claims made for pods' extended resources, or not.", "status"
        )
        self._preparations = make.counter(
            "dra_bindingconditions_allocations_total",
            "Attempts that waited for a driver's devices to be prepared.",
            *("profile", "driver", "status"),
        )
        self._preparation_seconds = make.histogram(
            "dra_bindingconditions_wait_duration_seconds",
            "How long pods wait until their devices are prepared, before they are bound.",
            PREPARATION_SECONDS,
            *("profile", "driver", "status"),
        )

    def _make_queue(self, make: _Maker) -> None:
        self._pending = make.gauge(
            "pending_pods",
            "Pods in the queue: active (ready to be tried), backoff (ready after a while), unschedulable "
            "(were tried and refused) or gated (not to be tried yet).",
            "queue",
        )
        self._incoming = make.counter(
            "queue_incoming_pods_total",
            "Pods put into a part of the queue, by the event that did it.",
            "queue",
            "event",
        )
        self._entities = make.gauge(
            "queued_entities",
            "Groups, and pods without one, in the queue, by its part (since v1.37).",
            "queue",
            "type",
        )
        self._incoming_entities = make.counter(
            "queue_incoming_entities_total",
            "Groups, and pods without one, put into a part of the queue, by the event that did it (since v1.37).",
            "queue",
            "event",
            "type",
        )
        self._unschedulable = make.gauge(
            "unschedulable_pods",
            "Pods that a plugin has rejected, alone or among others: the sum over plugins counts pods repeatedly.",
            "plugin",
            "profile",
        )
        self._hint_seconds = make.histogram(
            "queueing_hint_execution_duration_seconds",
            "How long a plugin's queueing hint takes.",
            PLUGIN_SECONDS,
            "plugin",
            "event",
            "hint",
        )
        self._in_flight = make.gauge(
            "inflight_events", "Events kept for pods that are being scheduled.", "event"
        )

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format, to be served as `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    # Attempts

    def scheduling_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        self._attempts(result, profile).inc()
        self._attempt_seconds(result, profile).observe(seconds)

    def scheduling_algorithm(self, seconds: float) -> None:
        self._algorithm_seconds().observe(seconds)

    def group_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        self._group_attempts(result, profile).inc()
        self._group_seconds(result, profile).observe(seconds)

    def group_algorithm(self, seconds: float) -> None:
        self._group_algorithm_seconds().observe(seconds)

    def batch_attempt(self, result: BatchAttempt, profile: str) -> None:
        self._batch_attempts(profile, result).inc()

    def batch_flushed(self, reason: BatchFlush, profile: str) -> None:
        self._batch_flushes(profile, reason).inc()

    def node_hint(self, hinted: bool, profile: str, seconds: float) -> None:
        self._node_hint_seconds("hint" if hinted else "no_hint", profile).observe(seconds)

    def batch_rescored(self, profile: str, seconds: float) -> None:
        self._rescored(profile).inc()
        self._rescore_seconds(profile).observe(seconds)

    def batch_stored(self, profile: str, seconds: float) -> None:
        self._store_seconds(profile).observe(seconds)

    def pod_scheduled(self, attempts: int, seconds: float | None) -> None:
        self._pod_attempts().observe(attempts)
        if seconds is not None:
            label = str(attempts) if attempts < MAX_ATTEMPTS_LABEL else f"{MAX_ATTEMPTS_LABEL}+"
            self._pod_seconds(label).observe(seconds)

    def pod_scheduled_after_flush(self) -> None:
        self._after_flush().inc()

    def cache_size(self, kind: CachedObject, count: int) -> None:
        self._cache_size(kind).set(count)

    def workers(self, operation: Operation, change: int) -> None:
        self._workers(operation).inc(change)

    def event_handled(self, event: str, seconds: float) -> None:
        self._event_seconds(event).observe(seconds)

    # Plugins

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        self._point_seconds(point, _CODES[code], profile).observe(seconds)

    def plugin_execution(self, plugin: str, point: MeasuredPoint, code: Code, seconds: float) -> None:
        self._plugin_seconds(plugin, point, _CODES[code]).observe(seconds)

    def plugin_evaluations(self, plugin: str, point: MeasuredPoint, profile: str, count: int) -> None:
        self._evaluations(plugin, point, profile).inc(count)

    def before_reading(self, tell: Callable[[], None]) -> bool:
        self.registry.before_collecting.append(tell)
        return True

    def permit_wait(self, code: Code, seconds: float) -> None:
        self._permit_seconds(_CODES[code]).observe(seconds)

    def plugin_metric(self, metric: PluginMetric) -> _Record:
        known, record = self._own.get(metric.name) or (metric, self._made(metric))
        if known != metric:
            raise ValueError(
                f"metric {metric.name!r}: there is another one of this name; give this one a name of its own"
            )
        self._own[metric.name] = metric, record
        return record

    def _made(self, metric: PluginMetric) -> _Record:
        """Make the metric of a plugin. Raises ValueError if the registry has another metric of this name."""
        name, text, labels = metric.name, metric.text, metric.label_names
        match metric.kind:
            case MetricKind.COUNTER:
                counters = children(prometheus_client.Counter(name, text, labels, registry=self.registry))
                return lambda value, values: counters(*values).inc(value)
            case MetricKind.GAUGE:
                gauges = children(prometheus_client.Gauge(name, text, labels, registry=self.registry))
                return lambda value, values: gauges(*values).set(value)
        histograms = children(
            prometheus_client.Histogram(name, text, labels, buckets=metric.buckets, registry=self.registry)
        )
        return lambda value, values: histograms(*values).observe(value)

    # Preemption

    def preemption_attempt(self) -> None:
        self._preemption_attempts().inc()

    def preemption_victims(self, count: int) -> None:
        self._preemption_victims().observe(count)

    def group_preemption_attempt(self, code: Code) -> None:
        self._group_preemptions(_CODES[code]).inc()

    def group_preemption_victims(self, count: int) -> None:
        self._group_preemption_victims().observe(count)

    def preemption_evaluated(self, preemptor: EntityKind, code: Code, seconds: float) -> None:
        self._evaluation_seconds(preemptor, _CODES[code]).observe(seconds)

    def preemption_carried_out(self, preemptor: EntityKind, success: bool, seconds: float) -> None:
        self._execution_seconds(preemptor, "success" if success else "error").observe(seconds)

    def groups_disrupted(self, preemptor: EntityKind, count: int) -> None:
        self._disruptions(preemptor).observe(count)

    def budgets_violated(self, preemptor: EntityKind, count: int) -> None:
        self._violations(preemptor).inc(count)

    # Devices

    def claim_created(self, *, success: bool) -> None:
        self._claims_created("success" if success else "failure").inc()

    def devices_prepared(self, profile: str, driver: str, result: DevicePreparation, seconds: float) -> None:
        self._preparations(profile, driver, result).inc()
        self._preparation_seconds(profile, driver, result).observe(seconds)

    # Volumes

    def volume_stage_failed(self, stage: VolumeStage) -> None:
        self._volume_failures(stage).inc()

    # Queue

    def pending_pods(self, queue: str, count: int) -> None:
        self._pending(queue).set(count)

    def pod_incoming(self, queue: str, event: str) -> None:
        self._incoming(queue, event).inc()

    def queued_entities(self, queue: str, kind: EntityKind, count: int) -> None:
        self._entities(queue, kind).set(count)

    def entity_incoming(self, queue: str, event: str, kind: EntityKind) -> None:
        self._incoming_entities(queue, event, kind).inc()

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self._unschedulable(plugin, profile).inc(change)

    def queueing_hint(self, plugin: str, event: str, result: HintResult, seconds: float) -> None:
        self._hint_seconds(plugin, event, result).observe(seconds)

    def in_flight_events(self, event: str, change: int) -> None:
        self._in_flight(event).inc(change)


def children(metric: MetricT) -> Callable[..., MetricT]:
    """Return a cached function from label values to the metric with these labels.

    The method `labels` would acquire a lock and convert the values with each call.
    """
    known: dict[tuple[str, ...], MetricT] = {}

    def child(*labels: str) -> MetricT:
        # Without a lock: two threads that miss at once get the same child from `labels`.
        found = known.get(labels)
        if found is None:
            found = known[labels] = metric.labels(*labels)
        return found

    return child
