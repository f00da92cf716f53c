"""A configuration is written as a document, and the document loads back to a configuration that does the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.config import (
    DEFAULT_PLUGINS,
    ConfigurationError,
    SchedulerConfiguration,
    parse_configuration,
    preset_configuration,
)
from kschedfw.config.effective import effective, settings_of
from kschedfw.config.schema import points_of_version
from kschedfw.config.writing import written
from kschedfw.framework.gate_table import GENERIC_WORKLOAD, TOPOLOGY_AWARE_WORKLOAD_SCHEDULING
from kschedfw.framework.gates import FeatureGates
from kschedfw.scheduler.setup import profiles_of
from tests.config.documents import document, loaded, plugin_with_hooks

Document = dict[str, Any]

WEIGHED = ("NodeResourcesFit", "ImageLocality", "PodTopologySpread", "TaintToleration", "InterPodAffinity")
SPARED = {"PrioritySort", "DefaultBinder"}
CHANGEABLE = sorted({plugin.name for plugin in DEFAULT_PLUGINS} - SPARED)

_TOPOLOGY_GATES = (GENERIC_WORKLOAD, TOPOLOGY_AWARE_WORKLOAD_SCHEDULING)
"""The gates with which profiles have plugins for placements by default."""

seconds = st.integers(1, 3600)
weights = st.integers(1, 100)
expression = {"key": "disk", "operator": "In", "values": ["ssd"]}

ARGS: dict[str, st.SearchStrategy[Any]] = {
    "NodeResourcesFit": st.fixed_dictionaries(
        {},
        optional={
            "ignoredResources": st.just(["example.com/gpu"]),
            "ignoredResourceGroups": st.just(["example.com"]),
            "scoringStrategy": st.fixed_dictionaries(
                {"type": st.sampled_from(("LeastAllocated", "MostAllocated"))},
                optional={
                    "resources": st.lists(weights, min_size=1, max_size=2).map(
                        lambda given: [
                            {"name": name, "weight": weight}
                            for name, weight in zip(("cpu", "example.com/gpu"), given, strict=False)
                        ]
                    )
                },
            ),
        },
    ),
    "InterPodAffinity": st.fixed_dictionaries(
        {}, optional={"hardPodAffinityWeight": weights, "ignorePreferredTermsOfExistingPods": st.booleans()}
    ),
    "NodeAffinity": st.just(
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [expression]}]
                }
            }
        }
    ),
    "PodTopologySpread": st.just(
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 3, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
        }
    ),
    "VolumeBinding": st.fixed_dictionaries({}, optional={"bindTimeoutSeconds": seconds}),
    "DynamicResources": st.fixed_dictionaries({}, optional={"filterTimeout": seconds.map("{}ms".format)}),
    "DefaultPreemption": st.fixed_dictionaries({}, optional={"minCandidateNodesAbsolute": seconds}),
}


@st.composite
def profiles(draw: st.DrawFn, name: str) -> Document:
    multi_point = {
        "enabled": draw(
            st.lists(
                st.builds(
                    lambda name, weight: {"name": name, "weight": weight}, st.sampled_from(WEIGHED), weights
                ),
                unique_by=lambda plugin: plugin["name"],
                max_size=3,
            )
        ),
        "disabled": [{"name": name} for name in draw(st.sets(st.sampled_from(CHANGEABLE), max_size=3))],
    }
    score = {
        "enabled": draw(
            st.lists(
                st.builds(
                    lambda name, weight: {"name": name, "weight": weight}, st.sampled_from(WEIGHED), weights
                ),
                unique_by=lambda plugin: plugin["name"],
                max_size=2,
            )
        ),
        "disabled": draw(st.sampled_from(([], [{"name": "*"}]))),
    }
    placement_score = {
        "enabled": draw(st.sampled_from(([], [{"name": "NodeResourcesFit", "weight": draw(weights)}]))),
        "disabled": draw(st.sampled_from(([], [{"name": "*"}], [{"name": "PodGroupPodsCount"}]))),
    }
    generators = draw(st.sampled_from(([], [{"name": "TopologyPlacementGenerator"}])))
    args = {name: draw(ARGS[name]) for name in draw(st.sets(st.sampled_from(sorted(ARGS)), max_size=3))}
    percentage = draw(st.none() | st.integers(0, 100))
    return {
        "schedulerName": name,
        "plugins": {
            "multiPoint": multi_point,
            "score": score,
            "placementGenerate": {"enabled": generators},
            "placementScore": placement_score,
        },
        "pluginConfig": [{"name": name, "args": value} for name, value in args.items()],
        **({} if percentage is None else {"percentageOfNodesToScore": percentage}),
    }


@st.composite
def configurations(draw: st.DrawFn) -> SchedulerConfiguration:
    # More than retryPeriod × 1.2, which is 2.4 s by default.
    renew = 2 + draw(seconds)
    extender = {
        "urlPrefix": "https://user:password@host/",
        "filterVerb": "filter",
        "httpTimeout": f"{draw(seconds)}ms",
        "tlsConfig": {"certData": "Y2VydA==", "keyData": "a2V5"},
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": draw(st.booleans())}],
    }
    settings: Document = {
        "parallelism": draw(st.integers(1, 64)),
        "percentageOfNodesToScore": draw(st.integers(0, 100)),
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": draw(st.integers(2, 100)),
        "delayCacheUntilActive": draw(st.booleans()),
        "leaderElection": {
            "leaderElect": draw(st.booleans()),
            "leaseDuration": f"{renew + 1}s",
            "renewDeadline": f"{renew}s",
            "resourceName": draw(st.sampled_from(("", "mine"))),
        },
        "clientConnection": {
            "kubeconfig": draw(st.sampled_from(("", "/etc/config"))),
            "qps": draw(st.integers(0, 10_000)) / 2,
            "burst": draw(st.integers(0, 100)),
        },
        "extenders": draw(st.sampled_from(([], [extender]))),
    }
    names = draw(st.sampled_from((["a"], ["a", "b"])))
    gates = draw(st.sampled_from(({}, dict.fromkeys(_TOPOLOGY_GATES, True))))
    return loaded(document(**settings, featureGates=gates, profiles=[draw(profiles(name)) for name in names]))


def read_again(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    return loaded(json.loads(json.dumps(written(configuration))))


@given(configuration=configurations())
def test_loads_back_to_the_same(configuration: SchedulerConfiguration) -> None:
    again = read_again(configuration)
    assert profiles_of(again) == profiles_of(configuration)
    assert settings_of(again, conceal=False) == settings_of(configuration, conceal=False)
    assert written(again) == written(configuration)


@pytest.mark.parametrize("name", ["default", "profiles"])
def test_examples(name: str) -> None:
    configuration = loaded(Path(f"examples/configurations/{name}.yaml").read_text())
    assert profiles_of(read_again(configuration)) == profiles_of(configuration)


def test_an_algorithm_provider() -> None:
    configuration = preset_configuration("ClusterAutoscalerProvider")
    assert profiles_of(read_again(configuration)) == profiles_of(configuration)


def test_plugins_that_v1_does_not_know_are_written_for_an_older_version() -> None:
    policy = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "MaxEBSVolumeCount"}]}'
    configuration = loaded(policy)
    assert written(configuration)["apiVersion"] == "kubescheduler.config.k8s.io/v1beta3"
    assert profiles_of(read_again(configuration)) == profiles_of(configuration)


def test_what_only_a_policy_can_say_is_refused() -> None:
    policy = '{"kind": "Policy", "apiVersion": "v1", "alwaysCheckAllPredicates": true}'
    with pytest.raises(ConfigurationError, match=r"profiles\[0\].runAllFilters: Forbidden: only a Policy"):
        written(loaded(policy))


def test_secrets_are_written_and_concealed_where_a_configuration_is_shown() -> None:
    extender = {
        "urlPrefix": "https://user:password@host/",
        "tlsConfig": {"certData": "Y2VydA==", "keyData": "a2V5"},
    }
    configuration = loaded(document(extenders=[extender]))
    in_full, concealed = json.dumps(written(configuration)), json.dumps(effective(configuration))
    assert "password" in in_full
    assert "a2V5" in in_full
    assert "user:password" not in concealed
    assert "a2V5" not in concealed


def test_every_point_names_its_plugins_itself() -> None:
    profile: Any = written(loaded(document()))["profiles"]
    points = profile[0]["plugins"]
    assert set(points) == {"multiPoint", *map(str, points_of_version("1.36"))}
    assert all(listed["disabled"] == [{"name": "*"}] for listed in points.values())
    shown: Any = effective(loaded(document()))["profiles"]
    scores = [{"name": plugin["name"], "weight": plugin["weight"]} for plugin in shown[0]["plugins"]["score"]]
    assert points["score"]["enabled"] == scores


def test_plugins_of_a_point_that_has_no_list_are_named_at_multi_point() -> None:
    stops = plugin_with_hooks("Stops", "placement_feasible")
    enabled = {"multiPoint": {"enabled": [{"name": "Stops"}]}}
    profile: Any = written(loaded(document(profiles=[{"plugins": enabled}]), stops))["profiles"]
    assert profile[0]["plugins"]["multiPoint"]["enabled"] == [{"name": "Stops"}]


def test_before_v1_36_plugins_for_placements_are_named_at_multi_point() -> None:
    configuration = parse_configuration(document(), gates=FeatureGates(version="1.35"))
    content: Any = written(configuration)
    plugins = content["profiles"][0]["plugins"]
    assert plugins["multiPoint"]["enabled"] == [{"name": "NodeResourcesFit", "weight": 1}]
    assert "placementScore" not in plugins
    again = parse_configuration(content, gates=configuration.gates)
    assert profiles_of(again) == profiles_of(configuration)
