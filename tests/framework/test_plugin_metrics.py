"""Metrics of plugins' own: who hears of them, and what is refused."""

from __future__ import annotations

import pytest

from kschedfw import (
    EnabledPlugin,
    Handle,
    InMemoryCluster,
    NodeInfo,
    Plugin,
    Profile,
    Registry,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.framework.errors import PluginLoadError
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder, PluginTally, listens
from kschedfw.simulator import Report, Simulation
from tests.framework.support import make_framework


class Racks(Plugin):
    name = "Racks"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.refusals = handle.counter("rack_refusals_total", "Nodes refused, by rack.", "rack")
        self.pods = handle.gauge("rack_pods", "Pods that the last node had.")
        self.sizes = handle.histogram("rack_sizes", "Sizes of node names.", buckets=(1, 3))

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        self.pods.set(len(node_info.pods))
        self.sizes.observe(len(node_info.name))
        if (rack := node_info.node.labels.get("rack", "")) != "full":
            return None
        self.refusals.inc(rack, by=2)
        return Status.unschedulable("node(s) were in a full rack")


def simulated() -> Report:
    registry = Registry()
    registry.register(Racks)
    profiles = [
        Profile([*default_profile().multi_point, EnabledPlugin("Racks")], scheduler_name=name)
        for name in "ab"
    ]
    nodes = [make_node(name).labels(rack=name).build() for name in ("full", "it")]
    pods = [make_pod(name).scheduler_name(name).build() for name in "ab"]
    return Simulation(InMemoryCluster([*nodes, *pods]), profiles=profiles, registry=registry).run()


def test_simulation_collects_them_by_profile_and_label() -> None:
    found = {(series.metric.name, series.labels): series for series in simulated().plugin_metrics}
    assert found["rack_refusals_total", ("a", "full")].value == 2
    assert found["rack_pods", ("b",)].value in (0, 1)
    sizes = found["rack_sizes", ("b",)]
    assert (sizes.count, sizes.value, sizes.buckets) == (2, 6, [0, 1])


def test_report_has_them_as_json() -> None:
    refusals, *_ = [each for each in simulated().plugin_metrics if each.metric.name == "rack_refusals_total"]
    assert refusals.to_json() == {
        "name": "rack_refusals_total",
        "kind": "counter",
        "labels": {"profile": "a", "rack": "full"},
        "value": 2,
    }
    sizes = simulated().plugin_metrics[-1].to_json()
    assert sizes["buckets"] == [{"le": 1, "count": 0}, {"le": 3, "count": 1}]
    assert "value" not in sizes


def test_report_without_such_plugins_has_none() -> None:
    cluster = InMemoryCluster([make_node("a").build(), make_pod("web").build()])
    assert Simulation(cluster).run().to_json()["pluginMetrics"] == []


def test_collecting_them_measures_nothing_else() -> None:
    assert not listens(PluginTally())
    assert not listens(NO_METRICS)


class Mistaken(Plugin):
    name = "Mistaken"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        handle.counter("rack_refusals_total", "Another counter.", "rack", "row")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("Racks",), "'Racks' should have small letters"),
        (("scheduler_racks",), "names with 'scheduler_' are kube-scheduler's"),
        (("racks", "profile"), "labels: expected distinct names other than profile, found profile"),
        (("racks", "a", "a"), "labels: expected distinct names other than profile, found a, a"),
    ],
)
def test_name_that_can_not_be_one_is_refused_when_the_metric_is_made(
    names: tuple[str, ...], told: str
) -> None:
    handle = make_framework(Racks).handle
    name, *labels = names
    with pytest.raises(ValueError, match=told):
        handle.counter(name, "", *labels)


def test_buckets_increase() -> None:
    with pytest.raises(ValueError, match="buckets: expected bounds that increase, found"):
        make_framework(Racks).handle.histogram("racks", "", buckets=(1, 1))


@pytest.mark.parametrize("recorder", [NO_METRICS, PluginTally()])
def test_wrong_number_of_labels_is_refused_whoever_listens(recorder: MetricsRecorder) -> None:
    plugin = make_framework(Racks, metrics=recorder).plugins["Racks"]
    assert isinstance(plugin, Racks)
    with pytest.raises(ValueError, match=r"metric 'rack_refusals_total': its labels are rack; found \(\)"):
        plugin.refusals.inc()
    with pytest.raises(ValueError, match="a counter only grows; found by=-1"):
        plugin.refusals.inc("full", by=-1)


def test_two_metrics_of_a_name_are_refused_with_the_plugin() -> None:
    with pytest.raises(
        PluginLoadError,
        match="'rack_refusals_total': there is another one of this name; give this",
    ):
        make_framework(Racks, Mistaken, metrics=PluginTally())
