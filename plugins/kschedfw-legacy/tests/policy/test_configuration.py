"""A Policy is a configuration like any other: `load_configuration` reads it, and a scheduler runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kschedfw import InMemoryCluster, Registry, make_node, make_pod
from kschedfw.cli import app
from kschedfw.config import ConfigurationError, FeatureGates, Origin, parse_configuration
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.scheduler.setup import scheduler_from_configuration


def document(**fields: Any) -> dict[str, Any]:
    return {"kind": "Policy", "apiVersion": "v1", **fields}


LABELLED = document(
    predicates=[{"name": "Zoned", "argument": {"labelsPresence": {"labels": ["zone"], "presence": True}}}],
    priorities=[{"name": "MostRequestedPriority", "weight": 3}],
    alwaysCheckAllPredicates=True,
)


def test_every_plugin_comes_from_the_policy_and_has_its_arguments() -> None:
    (profile,) = parse_configuration(LABELLED).profiles
    assert {plugin.origin for plugin in profile.listed} == {Origin.POLICY}
    (score,) = profile.points[ExtensionPoint.SCORE]
    assert (score.name, score.weight, score.absence) == ("NodeResourcesMostAllocated", 3, "")
    assert sorted(profile.args) == ["DefaultPreemption", "NodeLabel", "NodeResourcesMostAllocated"]
    assert profile.run_all_filters


def test_every_plugin_tells_what_of_the_policy_it_stands_for() -> None:
    (profile,) = parse_configuration(LABELLED).profiles
    asked = {plugin.name: plugin.asked_by for plugin in profile.listed}
    assert asked == {
        "PrioritySort": ("always",),
        "DefaultPreemption": ("always",),
        "DefaultBinder": ("always",),
        "NodeUnschedulable": ("mandatory predicate CheckNodeUnschedulable",),
        "TaintToleration": ("mandatory predicate PodToleratesNodeTaints",),
        "NodeLabel": ("predicate Zoned",),
        "NodeResourcesMostAllocated": ("priority MostRequestedPriority",),
    }


def test_feature_gates_change_what_it_stands_for() -> None:
    policy = document(priorities=[{"name": "ResourceLimitsPriority", "weight": 2}])
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(policy, "policy.json")
    assert str(caught.value) == (
        'policy.json: priorities[0].name: Invalid value: "ResourceLimitsPriority": '
        "needs the feature gate ResourceLimitsPriorityFunction"
    )
    gates = FeatureGates({"ResourceLimitsPriorityFunction": True})
    (profile,) = parse_configuration(policy, gates=gates).profiles
    (score,) = profile.points[ExtensionPoint.SCORE]
    assert (score.name, score.weight) == ("NodeResourceLimits", 2)


def test_extenders_come_along() -> None:
    configuration = parse_configuration(
        document(extenders=[{"urlPrefix": "http://a", "filterVerb": "filter"}])
    )
    assert [extender.filter_verb for extender in configuration.extenders] == ["filter"]


def test_what_is_not_there_is_left_out_with_a_warning() -> None:
    registry = Registry()
    registry.block("VolumeZone")  # whether it comes with this version or not
    policy = document(predicates=[{"name": "NoVolumeZoneConflict"}], priorities=[])
    configuration = parse_configuration(policy, registry=registry)
    assert configuration.warnings == (
        "plugin 'VolumeZone' (predicate NoVolumeZoneConflict) is left out: not in this version",
    )
    (profile,) = configuration.profiles
    assert [plugin.name for plugin in profile.points[ExtensionPoint.FILTER]] == [
        "NodeUnschedulable",
        "TaintToleration",
        "VolumeZone",
    ]
    assert "VolumeZone" not in profile.plugin_names


def test_arguments_that_contradict_each_other_are_refused() -> None:
    entries = [
        {"name": str(presence), "argument": {"labelsPresence": {"labels": ["zone"], "presence": presence}}}
        for presence in (True, False)
    ]
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(document(predicates=entries), "policy.json")
    assert str(caught.value) == (
        'policy.json: NodeLabel.presentLabels[0]: Invalid value: "zone": conflict with absentLabels[0]'
    )


def test_a_scheduler_runs_it() -> None:
    nodes = [make_node(name).capacity(cpu=4, memory="8Gi") for name in ("full", "empty", "unlabelled")]
    cluster = InMemoryCluster(node.labels(zone="z").build() for node in nodes[:2])
    cluster.add(nodes[2].build())
    cluster.add(make_pod("there").requests(cpu=2, memory="4Gi").node("full").build())
    pod = cluster.add(make_pod("new").requests(cpu=1, memory="1Gi").build())
    scheduler = scheduler_from_configuration(parse_configuration(LABELLED), cluster)
    scheduler.run_until_idle()
    bound = cluster.get(type(pod), pod.key)
    assert bound is not None
    assert bound.node_name == "full"


def test_the_command_checks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(LABELLED))
    assert app.run(["config", "check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: valid, with 1 profile\n"
    path.write_text(json.dumps(document(predicates=[{"name": "Warp"}])))
    assert app.run(["config", "check", str(path)]) == 1
    assert capsys.readouterr().out == (
        f'{path}: predicates[0].name: Invalid value: "Warp": predicate type not found\n'
    )
