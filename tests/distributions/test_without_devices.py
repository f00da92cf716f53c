"""kschedfw without kschedfw-devices: pods that need devices are refused, all others are decided as with it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from device_world import World, claim, devices, gpu_class, made, node, pod

from kschedfw import EnabledPlugin, Pod, Profile, Registry, WhatIf, make_node, make_pod
from kschedfw.api import how_to_install
from kschedfw.api.distributions import entry_points_of
from kschedfw.api.extensions import Extensions
from kschedfw.cluster import controllers, start_controllers
from kschedfw.cluster.memory import InMemoryCluster
from kschedfw.framework import devices as port
from kschedfw.simulator import Failures, Simulation
from tests.conformance.compare import differences
from tests.conformance.decide import decide
from tests.conformance.modes import pod_scenarios

DATA = Path(__file__).parents[1] / "conformance" / "data"
CATEGORIES = sorted(DATA.glob("*.jsonl.gz"))
OF_DEVICES = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")


@pytest.fixture(autouse=True)
def without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all entry points of kschedfw-devices, as if it weren't installed."""

    def remaining(groups: Iterable[str]) -> Sequence[EntryPoint]:
        found = entry_points_of(groups)
        return [each for each in found if each.dist is None or each.dist.name != "kschedfw-devices"]

    monkeypatch.setattr("kschedfw.framework.runtime.registry.entry_points_of", remaining)
    monkeypatch.setattr("kschedfw.api.extensions.entry_points_of", remaining)
    # Their offers are read once: groups that nobody has asked yet.
    for module, name in ((port, "PROVIDERS"), (controllers, "CONTROLLERS")):
        group: Extensions[object] = getattr(module, name)
        monkeypatch.setattr(module, name, Extensions(group.group, group.noun, group.expected, group.homes))


def fit_alone() -> Profile:
    names = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")
    return Profile([EnabledPlugin(name) for name in names])


def assert_refused(world: World, name: str) -> None:
    world.run()
    assert world.node_of(name) == ""
    assert "DynamicResources of the distribution kschedfw-devices" in world.told(name)
    assert how_to_install("kschedfw-devices") in world.told(name)


def test_a_pod_with_a_claim_is_refused_with_the_line_that_installs_the_distribution() -> None:
    assert_refused(World(node("a"), gpu_class(), devices("a", "g0"), claim("c"), pod("p", "c")), "p")


@pytest.mark.parametrize("profiles", [None, [fit_alone()]], ids=["default profile", "NodeResourcesFit alone"])
def test_a_pod_that_requests_a_resource_of_a_device_class_is_refused_also_without_dynamic_resources(
    profiles: Sequence[Profile] | None,
) -> None:
    world = World(
        node("a"),
        gpu_class(extendedResourceName="example.com/gpu"),
        devices("a", "g0"),
        pod("p", **{"example.com/gpu": "1"}),
        profiles=profiles,
    )
    assert_refused(world, "p")


def test_an_extended_resource_that_no_class_backs_is_the_nodes_own() -> None:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "50", "example.com/fpga": "1"}
    world = World(
        made("Node", "a", status={"allocatable": amounts}),
        gpu_class(extendedResourceName="example.com/gpu"),
        pod("p", **{"example.com/fpga": "1"}),
    )
    world.run()
    assert world.node_of("p") == "a"


def test_a_pod_is_placed_once_the_class_that_backed_its_resource_is_gone() -> None:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "50", "example.com/gpu": "1"}
    backing = gpu_class(extendedResourceName="example.com/gpu")
    world = World(
        made("Node", "a", status={"allocatable": amounts}), backing, pod("p", **{"example.com/gpu": "1"})
    )
    assert_refused(world, "p")
    world.cluster.delete(backing)
    world.cluster.add(pod("q", **{"example.com/gpu": "1"}))
    world.run()
    assert world.node_of("q") == "a"


def test_a_what_if_with_the_default_profile_warns_of_no_plugin(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kschedfw.what_if"), WhatIf([node("a")]).transaction() as trial:
        assert trial.schedule([pod("p")])
    assert caplog.messages == []


def test_a_pod_whose_volume_claim_is_missing_is_refused_and_no_plugin_has_failed() -> None:
    cluster = InMemoryCluster(
        [make_node("a").capacity(cpu=4, pods=9).build(), make_pod("p").claim("c").build()]
    )
    with Failures() as failures:
        report = Simulation(cluster).run()
    assert (failures.count, report.failed) == (0, 0)
    refused = cluster.get(Pod, "default/p")
    assert refused is not None
    # kube-scheduler's own words.
    said = '0/1 nodes are available: persistentvolumeclaim "c" not found. not found'
    assert [each.message for each in refused.status.conditions] == [said]


def test_no_controller_makes_claims() -> None:
    cluster = InMemoryCluster()
    cluster.add(made("ResourceClaimTemplate", "t", spec={"spec": {"devices": {"requests": []}}}))
    started = start_controllers(cluster)
    cluster.add(pod("p", template="t"))
    found = cluster.get(Pod, "default/p")
    assert found is not None
    assert found.status.resource_claim_statuses == ()
    assert [type(each).__name__ for each in started] == ["VolumeController"]


@pytest.mark.conformance
@pytest.mark.slow
@pytest.mark.parametrize(
    "every", [20, pytest.param(1, marks=pytest.mark.nightly)], ids=["a sample", "all recordings"]
)
def test_every_recorded_decision_without_devices_is_kube_schedulers(every: int) -> None:
    registry = Registry()
    compared = 0
    for path in CATEGORIES:
        for scenario in list(pod_scenarios(path))[::every]:
            if scenario.error is None and not any(map(scenario.objects.get, OF_DEVICES)):
                decisions = decide(scenario, registry)
                compared += len(decisions)
                assert [str(each) for each in differences(scenario, decisions)] == []
    assert compared > 4000 // every
