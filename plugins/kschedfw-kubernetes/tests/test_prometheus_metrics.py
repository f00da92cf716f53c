"""What Prometheus sees: names, labels, buckets, and numbers after pods were really scheduled."""

from __future__ import annotations

import importlib
import sys
from random import Random

import pytest
from kschedfw_kubernetes import prometheus_metrics
from kschedfw_kubernetes.prometheus_metrics import PrometheusMetrics, exponential
from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kschedfw import (
    Cache,
    Code,
    CycleState,
    FitError,
    Framework,
    GenericScheduler,
    Handle,
    InMemoryCluster,
    KschedfwError,
    Parallelizer,
    Parts,
    Plugin,
    Pod,
    Profile,
    Registry,
    Snapshot,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.api import how_to_install
from kschedfw.framework.metrics import (
    AttemptResult,
    BatchAttempt,
    BatchFlush,
    CachedObject,
    DevicePreparation,
    EntityKind,
    HintResult,
    MeasuredPoint,
    MetricsRecorder,
    NoMetrics,
    Operation,
    PluginSampling,
    VolumeStage,
)
from kschedfw.metrics import MetricKind, PluginMetric
from kschedfw.testing import FakeClock

PROFILE = "default-scheduler"


def tell_everything(metrics: MetricsRecorder) -> None:
    """Have each metric told once, so that it shows."""
    metrics.scheduling_attempt(AttemptResult.SCHEDULED, PROFILE, 0.5)
    metrics.scheduling_algorithm(0.5)
    metrics.group_attempt(AttemptResult.SCHEDULED, PROFILE, 0.5)
    metrics.group_algorithm(0.5)
    metrics.batch_attempt(BatchAttempt.HINT_USED, PROFILE)
    metrics.batch_flushed(BatchFlush.NODE_NOT_FULL, PROFILE)
    metrics.node_hint(True, PROFILE, 0.5)
    metrics.batch_stored(PROFILE, 0.5)
    metrics.batch_rescored(PROFILE, 0.5)
    metrics.pod_scheduled(1, 0.5)
    metrics.pod_scheduled_after_flush()
    metrics.cache_size(CachedObject.NODES, 3)
    metrics.workers(Operation.BINDING, 1)
    metrics.event_handled("NodeAdd", 0.5)
    metrics.extension_point(MeasuredPoint.FILTER, Code.SUCCESS, PROFILE, 0.5)
    metrics.plugin_execution("A", MeasuredPoint.FILTER, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 0.5)
    metrics.plugin_evaluations("A", MeasuredPoint.FILTER, PROFILE, 7)
    metrics.permit_wait(Code.SUCCESS, 0.5)
    metrics.preemption_attempt()
    metrics.preemption_victims(3)
    metrics.group_preemption_attempt(Code.SUCCESS)
    metrics.group_preemption_victims(3)
    metrics.preemption_evaluated(EntityKind.GROUP, Code.SUCCESS, 0.5)
    metrics.preemption_carried_out(EntityKind.GROUP, True, 0.5)
    metrics.groups_disrupted(EntityKind.POD, 1)
    metrics.budgets_violated(EntityKind.POD, 2)
    metrics.claim_created(success=True)
    metrics.devices_prepared(PROFILE, "gpu.example.com", DevicePreparation.TIMEOUT, 0.5)
    metrics.volume_stage_failed(VolumeStage.BIND)
    metrics.pending_pods("active", 3)
    metrics.pod_incoming("active", "NodeAdd")
    metrics.queued_entities("active", EntityKind.GROUP, 2)
    metrics.entity_incoming("active", "NodeAdd", EntityKind.GROUP)
    metrics.unschedulable_pods("A", PROFILE, 1)
    metrics.queueing_hint("A", "NodeAdd", HintResult.QUEUE, 0.5)
    metrics.in_flight_events("NodeAdd", 1)


class Scrape:
    """The text that Prometheus gets, parsed."""

    def __init__(self, metrics: PrometheusMetrics) -> None:
        text = metrics.exposition().decode()
        self.families: dict[str, Metric] = {
            family.name: family for family in text_string_to_metric_families(text)
        }
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        """The sample with exactly these labels."""
        found = [sample.value for sample in self.samples if sample.name == name and sample.labels == labels]
        return found[0] if found else None

    def total(self, name: str, **labels: str) -> float:
        """The sum of the samples with at least these labels."""
        return sum(
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def label(self, name: str, label: str) -> set[str]:
        return {sample.labels[label] for sample in self.samples if sample.name == name}

    def buckets(self, family: str) -> list[float]:
        bounds = [sample.labels["le"] for sample in self.families[family].samples if "le" in sample.labels]
        return list(map(float, bounds))


# name (without _total), type, labels, and for histograms the first bound, the last but +Inf, and how many there are;
# as of kube-scheduler v1.36, pkg/scheduler/metrics
TABLE = [
    ("schedule_attempts", "counter", {"result", "profile"}, None),
    ("scheduling_attempt_duration_seconds", "histogram", {"result", "profile"}, (0.001, 16.384, 15)),
    ("scheduling_algorithm_duration_seconds", "histogram", set(), (0.001, 16.384, 15)),
    ("podgroup_schedule_attempts", "counter", {"result", "profile"}, None),
    ("podgroup_scheduling_attempt_duration_seconds", "histogram", {"result", "profile"}, (0.001, 16.384, 15)),
    ("podgroup_scheduling_algorithm_duration_seconds", "histogram", set(), (0.001, 16.384, 15)),
    ("pod_scheduling_attempts", "histogram", set(), (1, 16, 5)),
    ("pod_scheduling_sli_duration_seconds", "histogram", {"attempts"}, (0.01, 5242.88, 20)),
    ("pod_scheduled_after_flush", "counter", set(), None),
    ("batch_attempts", "counter", {"profile", "result"}, None),
    ("batch_cache_flushed", "counter", {"profile", "reason"}, None),
    ("get_node_hint_duration_seconds", "histogram", {"hinted", "profile"}, (0.00001, 0.02048, 12)),
    ("batch_rescore_attempts", "counter", {"profile"}, None),
    ("batch_rescore_duration_seconds", "histogram", {"profile"}, (0.00001, 0.02048, 12)),
    ("store_schedule_results_duration_seconds", "histogram", {"profile"}, (0.00001, 0.02048, 12)),
    ("resourceclaim_creates", "counter", {"status"}, None),
    ("dra_bindingconditions_allocations", "counter", {"profile", "driver", "status"}, None),
    (
        "dra_bindingconditions_wait_duration_seconds",
        "histogram",
        {"profile", "driver", "status"},
        (0.1, 819.2, 14),
    ),
    ("volume_scheduling_stage_error", "counter", {"operation"}, None),
    ("preemption_attempts", "counter", set(), None),
    ("preemption_victims", "histogram", set(), (1, 64, 7)),
    # v1.37's, by kubernetes/kubernetes pkg/scheduler/metrics/metrics.go of that time
    ("workload_preemption_attempts", "counter", {"result"}, None),
    ("workload_preemption_victims", "histogram", set(), (1, 1024, 11)),
    ("preemption_workload_disruptions", "histogram", {"preemptor"}, (1, 1024, 11)),
    ("preemption_evaluation_duration_seconds", "histogram", {"preemptor", "result"}, (0.001, 32.768, 16)),
    ("preemption_execution_duration_seconds", "histogram", {"preemptor", "result"}, (0.001, 32.768, 16)),
    ("preemption_pdb_violations", "counter", {"preemptor"}, None),
    ("cache_size", "gauge", {"type"}, None),
    ("goroutines", "gauge", {"operation"}, None),
    ("event_handling_duration_seconds", "histogram", {"event"}, (0.0001, 0.2048, 12)),
    (
        "framework_extension_point_duration_seconds",
        "histogram",
        {"extension_point", "status", "profile"},
        (0.0001, 0.2048, 12),
    ),
    (
        "plugin_execution_duration_seconds",
        "histogram",
        {"plugin", "extension_point", "status"},
        (0.00001, 0.02216837820053101, 20),
    ),
    ("plugin_evaluation", "counter", {"plugin", "extension_point", "profile"}, None),
    ("permit_wait_duration_seconds", "histogram", {"result"}, (0.001, 16.384, 15)),
    ("pending_pods", "gauge", {"queue"}, None),
    ("queue_incoming_pods", "counter", {"queue", "event"}, None),
    ("queued_entities", "gauge", {"queue", "type"}, None),
    ("queue_incoming_entities", "counter", {"queue", "event", "type"}, None),
    ("unschedulable_pods", "gauge", {"plugin", "profile"}, None),
    (
        "queueing_hint_execution_duration_seconds",
        "histogram",
        {"plugin", "event", "hint"},
        (0.00001, 0.02216837820053101, 20),
    ),
    ("inflight_events", "gauge", {"event"}, None),
]


class Racks(Plugin):
    """Has a metric of each kind, and a value in each."""

    name = "Racks"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        handle.counter("rack_refusals_total", "Refusals.", "rack").inc("r1", by=2)
        handle.gauge("rack_pods", "Pods.").set(7)
        handle.histogram("rack_sizes", "Sizes.", buckets=(1, 3)).observe(2)


class TestExposition:
    @pytest.fixture
    def scrape(self) -> Scrape:
        metrics = PrometheusMetrics()
        tell_everything(metrics)
        return Scrape(metrics)

    @pytest.mark.parametrize(("name", "kind", "labels", "bounds"), TABLE, ids=[row[0] for row in TABLE])
    def test_names_types_labels_and_buckets_are_kube_schedulers(
        self,
        scrape: Scrape,
        name: str,
        kind: str,
        labels: set[str],
        bounds: tuple[float, float, int] | None,
    ) -> None:
        family = scrape.families[f"scheduler_{name}"]
        assert family.type == kind
        assert family.documentation
        assert {label for sample in family.samples for label in sample.labels} - {"le"} == labels
        if bounds is None:
            suffix = "_total" if kind == "counter" else ""
            assert {sample.name for sample in family.samples} == {f"scheduler_{name}{suffix}"}
        else:
            first, last, count = bounds
            buckets = scrape.buckets(family.name)
            assert len(buckets) == count + 1
            assert buckets[0] == first
            assert buckets[-2] == pytest.approx(last)
            assert buckets[-1] == float("inf")

    def test_there_is_nothing_else(self, scrape: Scrape) -> None:
        assert scrape.families.keys() == {f"scheduler_{name}" for name, *_ in TABLE}

    def test_label_values_are_kube_schedulers(self, scrape: Scrape) -> None:
        plugins = "scheduler_plugin_execution_duration_seconds_count"
        assert scrape.label(plugins, "status") == {"UnschedulableAndUnresolvable"}
        assert scrape.label(plugins, "extension_point") == {"Filter"}
        assert [result.value for result in AttemptResult] == ["scheduled", "unschedulable", "error"]
        assert [kind.value for kind in CachedObject] == ["nodes", "pods", "assumed_pods"]
        assert [result.value for result in HintResult] == ["Queue", "QueueSkip", "Error"]
        assert {Operation.BINDING.value, Operation.PRIORITIZING_EXTENDER.value} == {
            "binding",
            "prioritizing_extender",
        }

    def test_a_series_with_labels_appears_when_it_is_told_of_first(self) -> None:
        scrape = Scrape(PrometheusMetrics())
        assert scrape.value("scheduler_pending_pods", queue="active") is None
        assert scrape.value("scheduler_preemption_attempts_total") == 0

    def test_the_registry_suits_the_clients_own_servers(self) -> None:
        metrics = PrometheusMetrics()
        tell_everything(metrics)
        assert generate_latest(metrics.registry) == metrics.exposition()
        assert "_created" not in metrics.exposition().decode()
        assert prometheus_metrics.CONTENT_TYPE.startswith("text/plain; version=0.0.4")

    def test_plugins_own_metrics_are_beside_the_schedulers(self) -> None:
        metrics = PrometheusMetrics()
        for profile in ("a", "b"):
            registry = Registry(entry_points=False)
            registry.register(Racks)
            Framework(
                registry,
                Profile(["Racks"], scheduler_name=profile),
                Parts(InMemoryCluster(), metrics=metrics),
            )
        scrape = Scrape(metrics)
        assert scrape.value("rack_refusals_total", profile="a", rack="r1") == 2
        assert scrape.value("rack_refusals_total", profile="b", rack="r1") == 2
        assert scrape.value("rack_pods", profile="b") == 7
        assert scrape.value("rack_sizes_count", profile="a") == 1
        assert scrape.buckets("rack_sizes") == 2 * [1, 3, float("inf")]

    def test_two_metrics_of_one_name_are_refused(self) -> None:
        metrics = PrometheusMetrics()
        metrics.plugin_metric(PluginMetric(MetricKind.GAUGE, "racks", "Racks."))
        with pytest.raises(ValueError, match="metric 'racks': there is another one of this name"):
            metrics.plugin_metric(PluginMetric(MetricKind.COUNTER, "racks", "Racks."))

    def test_two_schedulers_in_one_process_do_not_mix(self) -> None:
        one, other = PrometheusMetrics(), PrometheusMetrics()
        one.preemption_attempt()
        assert Scrape(one).value("scheduler_preemption_attempts_total") == 1
        assert Scrape(other).value("scheduler_preemption_attempts_total") == 0

    def test_all_that_can_be_recorded_is_recorded_here(self) -> None:
        told = {name for name in vars(MetricsRecorder) if not name.startswith("_")}
        assert told <= vars(PrometheusMetrics).keys()
        assert told <= vars(MetricsRecorder).keys()

    def test_buckets_grow_by_a_factor(self) -> None:
        assert exponential(1, 3, 4) == (1, 3, 9, 27)


class TestNumbers:
    @pytest.fixture
    def metrics(self) -> PrometheusMetrics:
        return PrometheusMetrics()

    def test_an_attempt_counts_and_has_a_duration(self, metrics: PrometheusMetrics) -> None:
        for result, seconds in (("scheduled", 0.25), ("scheduled", 0.5), ("error", 4.0)):
            metrics.scheduling_attempt(AttemptResult(result), PROFILE, seconds)
        scrape = Scrape(metrics)
        scheduled = {"result": "scheduled", "profile": PROFILE}
        assert scrape.value("scheduler_schedule_attempts_total", **scheduled) == 2
        assert scrape.value("scheduler_scheduling_attempt_duration_seconds_sum", **scheduled) == 0.75
        assert scrape.value("scheduler_scheduling_attempt_duration_seconds_count", **scheduled) == 2
        assert scrape.value("scheduler_schedule_attempts_total", result="error", profile=PROFILE) == 1

    @pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (200, "15+")])
    def test_pods_that_took_many_attempts_share_a_series(
        self, metrics: PrometheusMetrics, attempts: int, label: str
    ) -> None:
        metrics.pod_scheduled(attempts, 3.0)
        scrape = Scrape(metrics)
        assert scrape.value("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts=label) == 3.0
        assert scrape.value("scheduler_pod_scheduling_attempts_sum") == attempts

    def test_a_pod_whose_first_attempt_is_not_known_has_no_duration(self, metrics: PrometheusMetrics) -> None:
        metrics.pod_scheduled(2, None)
        scrape = Scrape(metrics)
        assert scrape.value("scheduler_pod_scheduling_attempts_count") == 1
        assert scrape.total("scheduler_pod_scheduling_sli_duration_seconds_count") == 0

    def test_sizes_are_set(self, metrics: PrometheusMetrics) -> None:
        for count in (5, 2):
            metrics.pending_pods("backoff", count)
            metrics.cache_size(CachedObject.ASSUMED_PODS, count)
        scrape = Scrape(metrics)
        assert scrape.value("scheduler_pending_pods", queue="backoff") == 2
        assert scrape.value("scheduler_cache_size", type="assumed_pods") == 2

    def test_changes_add_up(self, metrics: PrometheusMetrics) -> None:
        for change in (3, -1):
            metrics.workers(Operation.BINDING, change)
            metrics.unschedulable_pods("NodeName", PROFILE, change)
            metrics.in_flight_events("NodeAdd", change)
        scrape = Scrape(metrics)
        assert scrape.value("scheduler_goroutines", operation="binding") == 2
        assert scrape.value("scheduler_unschedulable_pods", plugin="NodeName", profile=PROFILE) == 2
        assert scrape.value("scheduler_inflight_events", event="NodeAdd") == 2

    def test_a_preemption_has_victims(self, metrics: PrometheusMetrics) -> None:
        metrics.preemption_attempt()
        metrics.preemption_victims(65)
        scrape = Scrape(metrics)
        assert scrape.value("scheduler_preemption_attempts_total") == 1
        assert scrape.value("scheduler_preemption_victims_bucket", le="64.0") == 0
        assert scrape.value("scheduler_preemption_victims_bucket", le="+Inf") == 1


class TestScheduling:
    """Three nodes, one of them too small, and the default profile."""

    def schedule(
        self, metrics: MetricsRecorder | None, *pods: Pod, seed: int = 0, percent: int = 100
    ) -> list[str]:
        nodes = [
            make_node(f"n{index}").capacity(cpu=cpu, pods=10).build() for index, cpu in enumerate((4, 4, 1))
        ]
        cache, snapshot, random = Cache(), Snapshot(), Random(seed)
        for node in nodes:
            cache.add_node(node)
        framework = Framework(
            Registry(),
            default_profile(),
            Parts(
                InMemoryCluster(nodes),
                snapshot=snapshot,
                clock=FakeClock(),
                random=random,
                parallelizer=Parallelizer(1),
                metrics=NoMetrics() if metrics is None else metrics,
            ),
        )
        scheduler = GenericScheduler(cache, snapshot, random=random)
        sampling = PluginSampling(Random(seed), percent)
        hosts = []
        for pod in pods:
            state = CycleState()
            state.record_plugin_metrics = sampling()
            try:
                hosts.append(scheduler.schedule(framework, state, pod).suggested_host)
            except FitError as error:
                framework.run_post_filter_plugins(state, pod, error.diagnosis.node_to_status)
                hosts.append("")
        return hosts

    def pod(self, cpu: int) -> Pod:
        return make_pod(f"p{cpu}").requests(cpu=cpu).build()

    def test_a_scrape_shows_what_was_done(self) -> None:
        metrics = PrometheusMetrics()
        fits, fails = self.schedule(metrics, self.pod(2), self.pod(8))
        assert fits in {"n0", "n1"}
        assert fails == ""
        scrape = Scrape(metrics)
        points = "scheduler_framework_extension_point_duration_seconds_count"
        for point, status, times in (
            ("PreFilter", "Success", 2),
            ("PreScore", "Success", 1),
            ("Score", "Success", 1),
        ):
            assert scrape.value(points, extension_point=point, status=status, profile=PROFILE) == times
        assert scrape.total(points, extension_point="PostFilter") == 1
        evaluations = "scheduler_plugin_evaluation_total"
        fit = {"plugin": "NodeResourcesFit", "profile": PROFILE}
        assert scrape.value(evaluations, extension_point="PreFilter", **fit) == 2
        assert scrape.value(evaluations, extension_point="Filter", **fit) == 6, "two pods, three nodes"
        assert scrape.value(evaluations, extension_point="Score", **fit) == 2, "two feasible nodes"
        durations = "scheduler_plugin_execution_duration_seconds_count"
        fit_filter = {"plugin": "NodeResourcesFit", "extension_point": "Filter"}
        assert scrape.total(durations, **fit_filter, status="Success") == 2, "a batch for each pod"

    def test_plugins_are_measured_in_cycles_of_the_sample_only(self) -> None:
        metrics = PrometheusMetrics()
        self.schedule(metrics, self.pod(2), percent=0)
        scrape = Scrape(metrics)
        assert scrape.total("scheduler_plugin_execution_duration_seconds_count") == 0
        assert scrape.total("scheduler_plugin_evaluation_total") > 0

    @pytest.mark.parametrize("seed", range(5))
    def test_decisions_do_not_depend_on_who_listens(self, seed: int) -> None:
        pods = [self.pod(1) for _ in range(20)]
        plain = self.schedule(None, *pods, seed=seed)
        assert len(set(plain)) > 1
        assert plain == self.schedule(PrometheusMetrics(), *pods, seed=seed, percent=10)


@pytest.mark.parametrize("module", ["prometheus_metrics", "prometheus_resources"])
def test_without_the_extra_one_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, f"kschedfw_kubernetes.{module}", raising=False)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(f"kschedfw_kubernetes.{module}")
    assert isinstance(caught.value, KschedfwError)
    assert str(caught.value) == (
        "Prometheus metrics need prometheus-client; install it with: "
        f"{how_to_install('kschedfw-kubernetes', 'metrics')}"
    )
