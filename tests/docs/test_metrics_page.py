"""docs/metrics.md has every metric of kube-scheduler v1.36: among those that there are, or with the reason why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.prometheus_metrics import PrometheusMetrics
from serve.replicas import Replica, add_nodes, add_pod, is_bound
from serve.test_client_metrics import TABLE as REQUESTS
from test_prometheus_metrics import TABLE

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")

# pkg/scheduler/metrics and plugins/volumebinding/metrics of v1.36, without `scheduler_`
OF_KUBE_SCHEDULER = [
    "async_api_call_execution_duration_seconds",
    "async_api_call_execution_total",
    "batch_attempts_total",
    "batch_cache_flushed_total",
    "cache_size",
    "dra_bindingconditions_allocations_total",
    "dra_bindingconditions_wait_duration_seconds",
    "event_handling_duration_seconds",
    "framework_extension_point_duration_seconds",
    "get_node_hint_duration_seconds",
    "goroutines",
    "inflight_events",
    "pending_async_api_calls",
    "pending_pods",
    "permit_wait_duration_seconds",
    "plugin_evaluation_total",
    "plugin_execution_duration_seconds",
    "pod_scheduled_after_flush_total",
    "pod_scheduling_attempts",
    "pod_scheduling_sli_duration_seconds",
    "podgroup_schedule_attempts_total",
    "podgroup_scheduling_algorithm_duration_seconds",
    "podgroup_scheduling_attempt_duration_seconds",
    "preemption_attempts_total",
    "preemption_goroutines_duration_seconds",
    "preemption_goroutines_execution_total",
    "preemption_victims",
    "queue_incoming_pods_total",
    "queueing_hint_execution_duration_seconds",
    "resourceclaim_creates_total",
    "schedule_attempts_total",
    "scheduling_algorithm_duration_seconds",
    "scheduling_attempt_duration_seconds",
    "store_schedule_results_duration_seconds",
    "unschedulable_pods",
    "volume_binder_cache_requests_total",
    "volume_scheduling_stage_error_total",
]


def named(heading: str) -> set[str]:
    """The metrics in the first column of the tables below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| ", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


THERE, MISSING = named("The metrics"), named("What kube-scheduler has and kschedfw hasn't")


@pytest.mark.parametrize("name", OF_KUBE_SCHEDULER)
def test_each_of_kube_schedulers_is_there_or_has_a_reason(name: str) -> None:
    assert (f"scheduler_{name}" in THERE) != (f"scheduler_{name}" in MISSING)


def test_those_that_are_there_are_those_of_the_recorder() -> None:
    families = PrometheusMetrics().registry.collect()
    assert {f"{each.name}_total" if each.type == "counter" else each.name for each in families} == THERE


def test_each_of_the_clients_is_there() -> None:
    names = {
        f"rest_client_{name}_total" if kind == "counter" else f"rest_client_{name}"
        for name, kind, *_ in REQUESTS
    }
    assert names == {name for name in named("Those of the process") if name.startswith("rest_client_")}


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case[0])
def test_the_row_of_each_has_its_type_and_labels(case: tuple[str, str, set[str], object]) -> None:
    name, kind, labels, _ = case
    suffix = "_total" if kind == "counter" else ""
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `scheduler_{name}{suffix}` |"))
    assert kind in row
    assert all(f"`{label}`" in row for label in labels)


@pytest.mark.slow
def test_each_that_a_process_exposes_is_there(tmp_path: Path) -> None:
    with ApiServer() as server:
        add_nodes(server)
        add_pod(server, "a")
        with Replica(server, tmp_path, "leader") as replica:
            replica.wait_for(lambda: is_bound(server, "a"))
            for path in ("/metrics", "/metrics/slis"):
                exposed = re.findall(r"^# TYPE (\w+)", replica.get(path, replica.token).text, re.MULTILINE)
                documented = {name for name in exposed if f"`{name}`" in PAGE}
                assert {name for name in exposed if not name.startswith("process_")} <= documented
