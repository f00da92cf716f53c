"""Algorithm providers are kube-scheduler v1.20's lists of plugins, with what the feature gates make of them."""

from __future__ import annotations

import pytest
from kschedfw_legacy import (
    PROVIDERS,
    UnavailablePluginsError,
    UnknownProviderError,
    check_available,
    only_available,
    provenance,
    provider_profile,
    unavailable,
)

from kschedfw import Framework, InMemoryCluster, Parts, Profile, Registry, make_node, make_pod
from kschedfw.config import FeatureGates, Origin, preset_configuration
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.simulator import Simulation


def weights(profile: Profile) -> dict[str, int]:
    return {plugin.name: plugin.weight for plugin in profile.points[ExtensionPoint.SCORE]}


def names(profile: Profile, point: ExtensionPoint) -> list[str]:
    return [plugin.name for plugin in profile.points[point]]


DEFAULT = provider_profile("DefaultProvider")


def test_the_default_provider_scores_by_what_v1_20_scored_by() -> None:
    assert weights(DEFAULT) == {
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesLeastAllocated": 1,
        "NodeAffinity": 1,
        "NodePreferAvoidPods": 10000,
        "PodTopologySpread": 2,
        "TaintToleration": 1,
    }


def test_filters_run_in_v1_20s_order_so_that_taints_come_before_resources() -> None:
    order = names(DEFAULT, ExtensionPoint.FILTER)
    resources, zone = order.index("NodeResourcesFit"), order.index("VolumeZone")
    nodes_alone, volumes, other_pods = order[:resources], order[resources + 1 : zone + 1], order[zone + 1 :]
    assert nodes_alone == ["NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts"]
    assert all("Volume" in name or "Limits" in name for name in volumes)
    assert volumes[-2:] == ["VolumeBinding", "VolumeZone"]
    assert other_pods == ["PodTopologySpread", "InterPodAffinity"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_tainted_full_node_is_refused_for_its_taint_and_nobody_is_preempted_there(name: str) -> None:
    victim = make_pod("victim").node("n").requests(cpu=1).build()
    preemptor = make_pod("preemptor").priority(1000).requests(cpu=1).build()
    cluster = InMemoryCluster([make_node("n").capacity(cpu=1).taint("gpu").build(), victim, preemptor])
    profile = preset_configuration(name).profiles[0]
    (decision,) = Simulation(cluster, profiles=[profile]).run().decisions
    assert "untolerated taint" in decision.message
    assert "Insufficient cpu" not in decision.message
    assert "No preemption victims found" not in decision.message


def test_the_cluster_autoscalers_packs_instead_and_is_the_same_otherwise() -> None:
    packing = provider_profile("ClusterAutoscalerProvider")
    expected = weights(DEFAULT)
    del expected["NodeResourcesLeastAllocated"]
    assert weights(packing) == expected | {"NodeResourcesMostAllocated": 1}
    assert {p: packing.points[p] for p in packing.points if p != ExtensionPoint.SCORE} == {
        p: DEFAULT.points[p] for p in DEFAULT.points if p != ExtensionPoint.SCORE
    }


def test_without_default_spreading_selector_spread_is_back() -> None:
    profile = provider_profile("DefaultProvider", FeatureGates({"DefaultPodTopologySpread": False}))
    assert weights(profile) == {**weights(DEFAULT), "SelectorSpread": 1}
    assert names(profile, ExtensionPoint.PRE_SCORE)[-1] == "SelectorSpread"
    assert profile.args == {"PodTopologySpread": {"defaultingType": "List"}}
    assert provenance(profile)["SelectorSpread"] == (
        "DefaultProvider, without feature gate DefaultPodTopologySpread",
    )


def test_without_even_pods_spread_there_is_no_pod_topology_spread() -> None:
    profile = provider_profile("DefaultProvider", FeatureGates({"EvenPodsSpread": False}))
    assert "PodTopologySpread" not in profile.plugin_names
    assert "SelectorSpread" in profile.plugin_names
    assert profile.args == {}


def test_resource_limits_and_preemption_have_their_gates() -> None:
    gates = FeatureGates({"ResourceLimitsPriorityFunction": True, "DisablePreemption": True})
    profile = provider_profile("DefaultProvider", gates)
    assert weights(profile)["NodeResourceLimits"] == 1
    assert profile.points[ExtensionPoint.POST_FILTER] == ()
    assert names(DEFAULT, ExtensionPoint.POST_FILTER) == ["DefaultPreemption"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_plugin_says_where_it_comes_from(name: str) -> None:
    profile = provider_profile(name)
    assert provenance(profile) == dict.fromkeys(profile.plugin_names, (name,))


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_framework_runs_what_is_available(name: str) -> None:
    registry = Registry()
    profile = provider_profile(name, args={"NodeAffinity": {}}, scheduler_name="old")
    framework = Framework(registry, only_available(profile, registry), Parts(InMemoryCluster()))
    assert framework.handle.profile_name == "old"
    missing = set(unavailable(profile, registry))
    for point, plugins in profile.points.items():
        assert framework.plugins_at(point) == tuple(
            plugin.name for plugin in plugins if plugin.name not in missing
        )


def test_what_nobody_offers_is_told_at_once_with_who_asked_for_it() -> None:
    registry = Registry(entry_points=False)
    with pytest.raises(UnavailablePluginsError) as caught:
        check_available(DEFAULT, registry)
    assert list(caught.value.reasons) == list(DEFAULT.plugin_names)
    assert "VolumeBinding (DefaultProvider), NodeUnschedulable (DefaultProvider)" in str(caught.value)
    assert only_available(DEFAULT, registry).plugin_names == ()


def test_another_provider_is_refused() -> None:
    message = "algorithm provider 'Autoscaler' is not registered; there are DefaultProvider, ClusterAutosc"
    with pytest.raises(UnknownProviderError, match=message):
        provider_profile("Autoscaler")


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_is_a_configuration_like_any_other(name: str) -> None:
    configuration = preset_configuration(name)
    (configured,) = configuration.profiles
    asked = {(plugin.origin, plugin.asked_by) for plugin in configured.listed}
    assert asked == {(Origin.PROVIDER, (name,))}
    listed = {point: plugins for point, plugins in configured.points.items() if plugins}
    assert listed == provider_profile(name).points
    Framework(Registry(), configured, Parts(InMemoryCluster()))


def test_feature_gates_change_that_configuration() -> None:
    gates = FeatureGates({"DisablePreemption": True})
    (configured,) = preset_configuration("DefaultProvider", gates).profiles
    assert configured.points[ExtensionPoint.POST_FILTER] == ()


def test_what_a_provider_needs_and_nobody_offers_is_left_out_with_a_warning() -> None:
    registry = Registry()
    registry.block("VolumeZone")
    configuration = preset_configuration("DefaultProvider", registry=registry)
    assert configuration.warnings == (
        "plugin 'VolumeZone' (DefaultProvider) is left out: not in this version",
    )
    assert "VolumeZone" not in configuration.profiles[0].plugin_names
