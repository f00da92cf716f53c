"""A Policy becomes the profile that kube-scheduler v1.20 would have run."""

from __future__ import annotations

from typing import Any

import pytest
from kschedfw_legacy import (
    UnavailablePluginsError,
    check_available,
    only_available,
    parse_policy,
    policy_profile,
    provenance,
)
from kschedfw_legacy.policy.tables import PREDICATE_ALIASES, PREDICATES, PRIORITIES

from kschedfw import Framework, InMemoryCluster, Parts, Profile, Registry
from kschedfw.config import ConfigurationError, FeatureGates
from kschedfw.framework.profile import ExtensionPoint

NO_SPREADING = FeatureGates({"DefaultPodTopologySpread": False})
CONDITIONS = FeatureGates({"TaintNodesByCondition": False})


def profile(
    *predicates: Any, priorities: Any = (), gates: FeatureGates | None = None, **fields: Any
) -> Profile:
    """With names for entries; priorities have a weight of 1 unless they are pairs."""
    entries = [p if isinstance(p, dict) else {"name": p} for p in predicates]
    pairs = [p if isinstance(p, tuple | dict) else (p, 1) for p in priorities]
    weighed = [p if isinstance(p, dict) else dict(zip(("name", "weight"), p, strict=True)) for p in pairs]
    policy = parse_policy(
        {"kind": "Policy", "apiVersion": "v1", "predicates": entries, "priorities": weighed, **fields}
    )
    return policy_profile(policy) if gates is None else policy_profile(policy, gates)


def names(profile: Profile, point: ExtensionPoint) -> list[str]:
    return [plugin.name for plugin in profile.points.get(point, ())]


def weights(profile: Profile) -> dict[str, int]:
    return {plugin.name: plugin.weight for plugin in profile.points.get(ExtensionPoint.SCORE, ())}


class TestPredicates:
    def test_empty_lists_leave_what_is_mandatory(self) -> None:
        assert {str(point): names(profile(), point) for point in profile().points} == {
            "queueSort": ["PrioritySort"],
            "postFilter": ["DefaultPreemption"],
            "bind": ["DefaultBinder"],
            "filter": ["NodeUnschedulable", "TaintToleration"],
        }

    def test_they_run_in_an_order_of_their_own(self) -> None:
        made = profile("MatchInterPodAffinity", "HostName", "PodToleratesNodeTaints", "PodFitsResources")
        assert names(made, ExtensionPoint.FILTER) == [
            "NodeUnschedulable",
            "NodeName",
            "NodeResourcesFit",
            "TaintToleration",
            "InterPodAffinity",
        ]
        assert names(made, ExtensionPoint.PRE_FILTER) == ["NodeResourcesFit", "InterPodAffinity"]

    def test_general_predicates_are_four_and_overlap_with_their_parts(self) -> None:
        made = profile("PodFitsPorts", "GeneralPredicates")
        assert names(made, ExtensionPoint.FILTER) == [
            "NodeUnschedulable",
            "NodeResourcesFit",
            "NodeName",
            "NodePorts",
            "NodeAffinity",
            "TaintToleration",
        ]
        assert provenance(made)["NodePorts"] == ("predicate GeneralPredicates", "predicate PodFitsPorts")

    def test_volume_binding_takes_part_in_reserve_and_pre_bind(self) -> None:
        made = profile("CheckVolumeBinding")
        assert (
            names(made, ExtensionPoint.RESERVE) == names(made, ExtensionPoint.PRE_BIND) == ["VolumeBinding"]
        )

    def test_no_list_means_the_defaults(self) -> None:
        made = profile(predicates=None)
        assert names(made, ExtensionPoint.PRE_FILTER) == [
            "NodeResourcesFit",
            "NodePorts",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
        ]
        assert provenance(made)["NodeName"] == ("default predicate GeneralPredicates",)
        assert provenance(made)["NodeUnschedulable"] == ("mandatory predicate CheckNodeUnschedulable",)

    def test_ones_own_become_one_plugin_of_each_kind(self) -> None:
        made = profile(
            {"name": "ByZone", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
            {"name": "ByRow", "argument": {"serviceAffinity": {"labels": ["row", "rack"]}}},
            {"name": "Zoned", "argument": {"labelsPresence": {"labels": ["zone"], "presence": True}}},
            {"name": "Staying", "argument": {"labelsPresence": {"labels": ["retiring"], "presence": False}}},
        )
        assert names(made, ExtensionPoint.PRE_FILTER) == ["ServiceAffinity"]
        assert names(made, ExtensionPoint.FILTER)[-2:] == ["NodeLabel", "ServiceAffinity"]
        assert made.args == {
            "NodeLabel": {"presentLabels": ["zone"], "absentLabels": ["retiring"]},
            "ServiceAffinity": {"affinityLabels": ["zone", "row", "rack"]},
        }
        assert provenance(made)["ServiceAffinity"] == ("predicate ByZone", "predicate ByRow")

    def test_a_name_of_the_table_means_that_whatever_its_argument(self) -> None:
        made = profile({"name": "HostName", "argument": {"serviceAffinity": {"labels": ["zone"]}}})
        assert "NodeName" in made.plugin_names
        assert "ServiceAffinity" not in made.plugin_names

    @pytest.mark.parametrize("name", [*PREDICATES, *PREDICATE_ALIASES])
    def test_every_predicate_filters(self, name: str) -> None:
        made = profile(name)
        plugins = [plugin for plugin, _ in PREDICATES[PREDICATE_ALIASES.get(name, name)]]
        assert set(plugins) <= set(names(made, ExtensionPoint.FILTER))
        assert all(f"predicate {name}" in provenance(made)[plugin] for plugin in plugins)

    def test_without_taints_by_condition_conditions_are_looked_at(self) -> None:
        made = profile(gates=CONDITIONS)
        assert names(made, ExtensionPoint.FILTER) == ["CheckNodeCondition"]
        default = names(profile(predicates=None, gates=CONDITIONS), ExtensionPoint.FILTER)
        assert default[0] == "CheckNodeCondition"
        assert {"CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure"} < set(default)


class TestPriorities:
    @pytest.mark.parametrize("name", [name for name in PRIORITIES if name != "ResourceLimitsPriority"])
    def test_every_priority_scores_with_its_weight(self, name: str) -> None:
        plugin, _ = PRIORITIES[name]
        expected = "PodTopologySpread" if name == "SelectorSpreadPriority" else plugin
        assert weights(profile(priorities=[(name, 7)])) == {expected: 7}

    def test_equal_priority_does_nothing(self) -> None:
        assert weights(profile(priorities=["EqualPriority"])) == {}

    def test_no_list_means_the_defaults(self) -> None:
        assert weights(defaults()) == {
            "NodeResourcesBalancedAllocation": 1,
            "PodTopologySpread": 2,
            "ImageLocality": 1,
            "InterPodAffinity": 1,
            "NodeResourcesLeastAllocated": 1,
            "NodeAffinity": 1,
            "NodePreferAvoidPods": 10000,
            "TaintToleration": 1,
        }

    def test_ones_own_of_a_kind_share_a_plugin_and_add_up_their_weights(self) -> None:
        made = profile(
            priorities=[
                {"name": "A", "weight": 3, "argument": {"labelPreference": {"label": "a", "presence": True}}},
                {"name": "B", "weight": 3, "argument": {"labelPreference": {"label": "b"}}},
                {"name": "C", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "rack"}}},
            ]
        )
        assert weights(made) == {"NodeLabel": 6, "ServiceAffinity": 2}
        assert made.args == {
            "NodeLabel": {"presentLabelsPreference": ["a"], "absentLabelsPreference": ["b"]},
            "ServiceAffinity": {"antiAffinityLabelsPreference": ["rack"]},
        }
        assert provenance(made)["NodeLabel"] == ("priority A", "priority B")

    def test_a_ratio_has_its_shape_and_its_resources(self) -> None:
        shape = [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 7}]
        ratio = {"shape": shape, "resources": [{"name": "example.com/foo", "weight": 3}]}
        entry = {"name": "R", "weight": 2, "argument": {"requestedToCapacityRatioArguments": ratio}}
        made = profile(priorities=[entry])
        assert weights(made) == {"RequestedToCapacityRatio": 2}
        assert made.args == {"RequestedToCapacityRatio": ratio}

    def test_the_last_of_two_weights_counts_for_a_priority_and_the_first_plugins_for_a_plugin(self) -> None:
        twice = [("SelectorSpreadPriority", 5), ("ServiceSpreadingPriority", 4)]
        assert weights(profile(priorities=twice)) == {"PodTopologySpread": 4}
        shared = [("SelectorSpreadPriority", 5), ("EvenPodsSpreadPriority", 1)]
        assert weights(profile(priorities=shared)) == {"PodTopologySpread": 1}

    @pytest.mark.parametrize(
        ("priorities", "defaulting"),
        [
            (["SelectorSpreadPriority"], "System"),
            (["EvenPodsSpreadPriority"], "List"),
            (["EvenPodsSpreadPriority", "SelectorSpreadPriority"], "System"),
        ],
    )
    def test_only_selector_spread_brings_the_default_constraints(
        self, priorities: list[str], defaulting: str
    ) -> None:
        assert profile(priorities=priorities).args == {"PodTopologySpread": {"defaultingType": defaulting}}

    def test_without_default_spreading_selector_spread_is_itself(self) -> None:
        both = ["SelectorSpreadPriority", ("EvenPodsSpreadPriority", 2)]
        made = profile(priorities=both, gates=NO_SPREADING)
        assert weights(made) == {"PodTopologySpread": 2, "SelectorSpread": 1}
        assert names(made, ExtensionPoint.PRE_SCORE) == ["PodTopologySpread", "SelectorSpread"]
        assert made.args == {"PodTopologySpread": {"defaultingType": "List"}}

    @pytest.mark.parametrize(
        ("weight", "args"), [(10, {"InterPodAffinity": {"hardPodAffinityWeight": 10}}), (0, {})]
    )
    def test_the_symmetric_weight_is_inter_pod_affinitys(self, weight: int, args: dict[str, Any]) -> None:
        made = profile(priorities=["InterPodAffinityPriority"], hardPodAffinitySymmetricWeight=weight)
        assert made.args == args
        assert profile(hardPodAffinitySymmetricWeight=weight).args == {}


def defaults(gates: FeatureGates | None = None) -> Profile:
    policy = parse_policy({"kind": "Policy", "apiVersion": "v1"})
    return policy_profile(policy) if gates is None else policy_profile(policy, gates)


class TestGates:
    def test_without_even_pods_spread_the_defaults_and_the_names_are_gone(self) -> None:
        gates = FeatureGates({"EvenPodsSpread": False})
        assert "PodTopologySpread" not in defaults(gates).plugin_names
        assert weights(defaults(gates))["SelectorSpread"] == 1
        with pytest.raises(ConfigurationError) as caught:
            profile("EvenPodsSpread", priorities=["EvenPodsSpreadPriority"], gates=gates)
        why = "needs the feature gate EvenPodsSpread"
        assert [str(error) for error in caught.value.errors] == [
            f'predicates[0].name: Invalid value: "EvenPodsSpread": {why}',
            f'priorities[0].name: Invalid value: "EvenPodsSpreadPriority": {why}',
        ]

    def test_resource_limits_are_a_default_and_a_name_with_their_gate_alone(self) -> None:
        gates = FeatureGates({"ResourceLimitsPriorityFunction": True})
        assert weights(defaults(gates))["NodeResourceLimits"] == 1
        assert weights(profile(priorities=[("ResourceLimitsPriority", 2)], gates=gates)) == {
            "NodeResourceLimits": 2
        }
        assert "NodeResourceLimits" not in defaults().plugin_names
        with pytest.raises(ConfigurationError, match="needs the feature gate ResourceLimitsPriorityFunction"):
            profile(priorities=["ResourceLimitsPriority"])

    def test_preemption_can_be_disabled(self) -> None:
        assert "DefaultPreemption" not in defaults(FeatureGates({"DisablePreemption": True})).plugin_names


class TestRunning:
    def test_what_runs_is_what_the_profile_says(self) -> None:
        made = profile(
            "GeneralPredicates",
            "EvenPodsSpread",
            "MatchInterPodAffinity",
            "CheckNodeMemoryPressure",
            {"name": "Zoned", "argument": {"labelsPresence": {"labels": ["zone"], "presence": True}}},
            {"name": "ByZone", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
            priorities=[name for name in PRIORITIES if name != "ResourceLimitsPriority"],
        )
        framework = Framework(Registry(), made, Parts(InMemoryCluster()))
        assert {point: framework.plugins_at(point) for point in made.points} == {
            point: tuple(plugin.name for plugin in plugins) for point, plugins in made.points.items()
        }

    def test_resources_that_extenders_manage_alone_are_left_to_them(self) -> None:
        managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
        made = profile("PodFitsResources", extenders=[{"urlPrefix": "http://a", "managedResources": managed}])
        assert made.args == {"NodeResourcesFit": {"ignoredResources": ["example.com/gpu"]}}

    def test_all_predicates_can_be_checked(self) -> None:
        assert profile(alwaysCheckAllPredicates=True).run_all_filters
        assert not profile().run_all_filters

    def test_what_is_missing_is_told_with_what_asked_for_it(self) -> None:
        registry = Registry()
        for name in ("VolumeRestrictions", "VolumeZone"):  # whether they come with this version or not
            registry.block(name)
        made = profile("NoDiskConflict", "NoVolumeZoneConflict", "HostName")
        with pytest.raises(UnavailablePluginsError) as caught:
            check_available(made, registry)
        assert str(caught.value) == (
            "no installed distribution offers these plugins: VolumeRestrictions (predicate NoDiskConflict), "
            "VolumeZone (predicate NoVolumeZoneConflict)"
        )
        available = only_available(made, registry)
        check_available(available, registry)
        assert names(available, ExtensionPoint.FILTER) == ["NodeUnschedulable", "NodeName", "TaintToleration"]
        Framework(registry, available, Parts(InMemoryCluster()))
