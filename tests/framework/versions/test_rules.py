"""Rules that versions changed, and the differences between versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kschedfw.framework.gate_table import FEATURE_GATES
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.versions import REFERENCE, RULES, VERSIONS, Basis, VersionChange
from kschedfw.framework.versions.v1_37 import PLACEMENT_FEASIBLE

V1_37 = FeatureGates(version="1.37")


def names(changes: tuple[VersionChange, ...]) -> set[str]:
    return {each.name for each in changes}


def test_rules_and_gates_have_names_of_their_own() -> None:
    rules = [rule.name for rule in RULES]
    assert len(set(rules)) == len(rules)
    assert not set(rules) & FEATURE_GATES.keys()


def test_every_rule_belongs_to_a_known_version_and_names_its_source() -> None:
    for rule in RULES:
        assert rule.since in VERSIONS, rule.name
        assert all((rule.source, rule.before, rule.after)), rule.name


DEVICES = "../plugins/kschedfw-devices/tests/dynamic_resources"

ANSWERS = {
    "ImageVolumes": "framework/versions/test_v1_37.py::TestImageVolumes",
    "AntiAffinityHints": "framework/versions/test_v1_37.py::TestAntiAffinityHints",
    "ResizedPods": "framework/versions/test_v1_37.py::TestResizedPods",
    "FirstViolatedBudget": "framework/versions/test_v1_37.py::TestFirstViolatedBudget",
    "PlacementFeasible": "framework/versions/test_v1_37.py::TestGangScheduling",
    "PodGroupPostFilter": "framework/versions/test_v1_37.py::TestGroupPostFilter",
    "PodGroupVictims": "framework/versions/test_v1_37.py::TestGroupVictims",
    "PodGroupPriorities": "framework/versions/test_v1_37.py::TestGroupValidation",
    "PodGroupPreemptionPolicies": "framework/versions/test_v1_37.py::TestGroupValidation",
    "PodGroupInitiallyScheduled": "framework/versions/test_v1_37.py::TestGroupValidation",
    "PodGroupBackoff": "framework/versions/test_v1_37.py::TestGroupBackoff",
    "PodGroupLeftovers": "framework/versions/test_v1_37.py::TestGroupLeftovers",
    "PodGroupEntity": "scheduler/queue/test_group_entities.py::test_a_new_member_backs_off_with_its_group",
    "BatchRescoring": "scheduler/test_batching.py::TestRescoring",
    "DeviceSelectorErrors": f"{DEVICES}/test_v1_37.py::TestDeviceSelectorErrors",
    "DeviceConfigurations": f"{DEVICES}/test_v1_37.py::TestDeviceConfigurations",
    "SharedCountersByNode": f"{DEVICES}/test_v1_37.py::TestSharedCountersByNode",
    "PodEventNames": "framework/versions/test_v1_37.py::TestPodEventNames",
    "PodGroupQueueNames": "framework/versions/test_v1_37.py::TestPodGroupQueueNames",
    "WorkloadPreemptionMetrics": "framework/versions/test_v1_37.py::TestWorkloadPreemptionMetrics",
}
"""The test of each rule that has the answers before it and since then."""


def test_each_rule_has_a_test_with_both_answers() -> None:
    assert ANSWERS.keys() == {rule.name for rule in RULES}
    for place in ANSWERS.values():
        path, _, name = place.partition("::")
        text = (Path(__file__).parents[2] / path).read_text(encoding="utf-8")
        (named,) = re.findall(
            rf"^(?:class|def) {name}\b.*?(?=^class |^def |\Z)", text, re.MULTILINE | re.DOTALL
        )
        both = ("1.36", "version: str", "answers(", "in_both(", "both_rules(", "before, after")
        assert any(each in named for each in both), place


def test_rules_that_decide_nothing_are_no_differences() -> None:
    silent = {rule.name for rule in RULES if not rule.decides}
    assert silent == {"PodEventNames", "PodGroupQueueNames", "WorkloadPreemptionMetrics"}
    assert not silent & names(DEFAULT_GATES.changes_to(V1_37))


def test_only_rules_up_to_the_reference_version_are_recorded() -> None:
    newer = [rule for rule in RULES if VERSIONS.index(rule.since) > VERSIONS.index(REFERENCE)]
    assert newer
    assert {rule.basis for rule in newer} == {Basis.READ}


def test_a_rule_holds_from_its_version_on() -> None:
    follows = {version: FeatureGates(version=version).follows(PLACEMENT_FEASIBLE) for version in VERSIONS}
    assert follows == {"1.34": False, "1.35": False, "1.36": False, "1.37": True}
    assert follows == {
        version: FeatureGates(version=version).follows("PlacementFeasible") for version in VERSIONS
    }


def test_no_rule_has_an_unknown_name() -> None:
    with pytest.raises(KeyError, match="Unknown"):
        V1_37.follows("Unknown")


def test_a_version_differs_from_itself_in_nothing() -> None:
    assert DEFAULT_GATES.changes_to(DEFAULT_GATES) == ()


def test_the_differences_of_two_versions_are_gates_and_rules() -> None:
    changes = DEFAULT_GATES.changes_to(V1_37)
    assert {"StorageCapacityScoring", "PlacementFeasible"} <= names(changes)
    scoring = next(each for each in changes if each.name == "StorageCapacityScoring")
    assert str(scoring) == "StorageCapacityScoring (KEP-4049)"
    assert scoring.text.endswith(": off in v1.36, on in v1.37")


def test_a_gate_that_is_set_makes_no_difference() -> None:
    given = {"StorageCapacityScoring": True}
    changes = FeatureGates(given).changes_to(FeatureGates(given, "1.37"))
    assert "StorageCapacityScoring" not in names(changes)


def test_gates_that_change_no_decision_are_no_differences() -> None:
    older = FeatureGates(version="1.34")
    assert not older.enabled("ClearingNominatedNodeNameAfterBinding")
    assert "ClearingNominatedNodeNameAfterBinding" not in names(older.changes_to(DEFAULT_GATES))


def test_single_differences_can_be_taken_over() -> None:
    changes = {each.name: each for each in DEFAULT_GATES.changes_to(V1_37)}
    mixed = DEFAULT_GATES.with_changes([changes["StorageCapacityScoring"]], "1.37")
    assert mixed.enabled("StorageCapacityScoring")
    assert not mixed.follows(PLACEMENT_FEASIBLE)
    assert names(mixed.changes_to(V1_37)) == changes.keys() - {"StorageCapacityScoring"}


def test_with_all_differences_a_version_decides_as_the_other() -> None:
    for before in VERSIONS:
        for after in VERSIONS:
            old, new = FeatureGates(version=before), FeatureGates(version=after)
            assert old.with_changes(old.changes_to(new), after).changes_to(new) == ()
