"""Feature gates of kube-scheduler."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from kschedfw.framework import gate_table
from kschedfw.framework.gate_table import (
    FEATURE_GATES,
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    NODE_DECLARED_FEATURES,
    WORKLOAD_AWARE_PREEMPTION,
)
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGateError, FeatureGates
from kschedfw.framework.versions import REFERENCE, VERSIONS

DOCS = Path(__file__).parents[2] / "docs"

ASKED_IN_1_36 = [
    "ClearingNominatedNodeNameAfterBinding",
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "DRASchedulerFilterTimeout",
    "DRAWorkloadResourceClaims",
    "DynamicResourceAllocation",
    "GangScheduling",
    "GenericWorkload",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScaling",
    "MatchLabelKeysInPodTopologySpread",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "NodeDeclaredFeatures",
    "NodeInclusionPolicyInPodTopologySpread",
    "NominatedNodeNameForExpectation",
    "OpportunisticBatching",
    "PodLevelResources",
    "SchedulerAsyncAPICalls",
    "SchedulerAsyncPreemption",
    "SchedulerPopFromBackoffQ",
    "SchedulerQueueingHints",
    "SidecarContainers",
    "StorageCapacityScoring",
    "TaintTolerationComparisonOperators",
    "TopologyAwareWorkloadScheduling",
    "VolumeAttributesClass",
    "VolumeLimitScaling",
    "WorkloadAwarePreemption",
]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "GenericWorkloads=true",
            "unrecognized feature gate: GenericWorkloads; did you mean 'GenericWorkload'?",
        ),
        (
            "GenericWorkload=on",
            'invalid value of GenericWorkload=on, err: strconv.ParseBool: parsing "on": invalid syntax',
        ),
        ("GenericWorkload", "missing bool value for GenericWorkload"),
        (
            "SchedulerQueueingHints=false",
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        ),
        (
            "SchedulerAsyncAPICalls=true",
            (
                "cannot set feature gate SchedulerAsyncAPICalls to true:"
                " writes beside the scheduling cycle: not modelled: writes are made where they are decided on"
            ),
        ),
        ("CompositePodGroup=true", "unrecognized feature gate: CompositePodGroup; not in v1.36"),
    ],
)
def test_gates_that_cannot_be_set_are_refused_in_kube_schedulers_words(text: str, problem: str) -> None:
    with pytest.raises(FeatureGateError) as raised:
        FeatureGates.parse(text)
    assert str(raised.value) == problem


def test_gates_are_read_as_on_the_command_line() -> None:
    gates = FeatureGates.parse("GenericWorkload=true, GangScheduling=1")
    assert gates == FeatureGates.of(GENERIC_WORKLOAD, GANG_SCHEDULING)
    assert gates.enabled(GANG_SCHEDULING)
    assert not any(DEFAULT_GATES.enabled(name) for name in (GENERIC_WORKLOAD, GANG_SCHEDULING))


def test_a_gate_can_be_set_to_the_default_that_is_not_modelled() -> None:
    assert FeatureGates.parse("OpportunisticBatching=true").enabled("OpportunisticBatching")
    assert not FeatureGates.parse("OpportunisticBatching=false").enabled("OpportunisticBatching")


def test_every_gate_needs_gates_of_the_table_that_are_as_old() -> None:
    for name, gate in FEATURE_GATES.items():
        assert set(gate.needs) <= FEATURE_GATES.keys()
        for version in VERSIONS:
            if gate.at(version) is not None:
                for needed in gate.needs:
                    assert FEATURE_GATES[needed].at(version) is not None, (name, version)


def test_the_table_has_the_gates_that_v1_36_asks() -> None:
    assert sorted(name for name, _, _ in DEFAULT_GATES.features) == sorted(ASKED_IN_1_36)


def test_defaults_are_those_of_the_version_that_is_asked_for() -> None:
    assert DEFAULT_GATES.enabled(NODE_DECLARED_FEATURES)
    assert not FeatureGates(version="1.35").enabled(NODE_DECLARED_FEATURES)
    with pytest.raises(FeatureGateError, match="there are no defaults of version"):
        FeatureGates(version="1.12")


def test_a_default_whose_behaviour_is_not_here_is_told() -> None:
    assert not list(DEFAULT_GATES.notes)
    assert (
        "DRADeviceTaints is false in v1.35, but only its behaviour of v1.36 is here"
        in FeatureGates(version="1.35").notes
    )


def test_groups_have_one_gate_from_v1_37_on() -> None:
    gates = FeatureGates({GENERIC_WORKLOAD: True}, "1.37")
    assert gates.enabled(GANG_SCHEDULING)
    assert gates.enabled(WORKLOAD_AWARE_PREEMPTION)
    with pytest.raises(FeatureGateError, match="it is part of GenericWorkload"):
        FeatureGates({GENERIC_WORKLOAD: True, GANG_SCHEDULING: True}, "1.37")


def test_features_say_whether_their_behaviour_is_here() -> None:
    is_here = {name: here for name, _, here in FeatureGates.of(GENERIC_WORKLOAD).features}
    assert is_here[GENERIC_WORKLOAD]
    assert not is_here[GANG_SCHEDULING]
    assert is_here["OpportunisticBatching"]
    assert not is_here["SchedulerAsyncPreemption"]
    assert REFERENCE == "1.36"


def test_the_page_of_gates_is_generated() -> None:
    generated = runpy.run_path(str(DOCS / "generate_feature_gates.py"))["feature_gates_page"]()
    page = (DOCS / "feature-gates.md").read_text(encoding="utf-8")
    assert page == generated, "run: python docs/generate_feature_gates.py"


def test_every_gate_that_can_only_be_off_says_what_is_not_here() -> None:
    assert [name for name, gate in FEATURE_GATES.items() if gate.only is False and not gate.lacks] == []


def _settings() -> list[tuple[str, str, bool]]:
    """Every gate in every version that has it, with both values."""
    return [
        (name, version, value)
        for name, gate in FEATURE_GATES.items()
        for version in VERSIONS
        if gate.at(version) is not None
        for value in (False, True)
    ]


@pytest.mark.parametrize(("name", "version", "value"), _settings())
def test_every_gate_of_the_table_is_modelled_or_refused_by_name_with_the_reason(
    name: str, version: str, value: bool
) -> None:
    gate = FEATURE_GATES[name]
    state = gate.at(version)
    assert state is not None
    # What depends on the gate, or what it depends on, is another test's business.
    problems = [each for each in FeatureGates(version=version)._problems(name, value) if name in each]
    if state.locked and value is not state.default:
        assert problems == [
            f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(state.default).lower()}"
        ]
    elif gate.only in (None, value) or value is state.default:
        assert not problems
    else:
        (problem,) = problems
        assert problem.startswith(
            f"cannot set feature gate {name} to {str(value).lower()}: {gate.effect}: not modelled: "
        )
        assert problem.endswith(gate.lacks or "is here")


@pytest.mark.parametrize(
    ("name", "version"), [("GangScheduling", "1.34"), ("WorkloadAwarePreemption", "1.35")]
)
def test_a_gate_that_came_later_is_not_called_a_part_of_another(name: str, version: str) -> None:
    with pytest.raises(FeatureGateError, match=f"unrecognized feature gate: {name}; not in v{version}"):
        FeatureGates({name: True}, version)


def test_every_gate_that_can_be_set_is_asked_somewhere() -> None:
    """What such a gate switches is in the source of the core or of a distribution; nobody may forget to ask it."""
    root = Path(__file__).parents[2]
    sources = [*root.glob("kschedfw/**/*.py"), *root.glob("plugins/kschedfw-devices/src/**/*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources if path.name != "gate_table.py")
    constants = {value: name for name, value in vars(gate_table).items() if isinstance(value, str)}
    asked = {
        name
        for name in FEATURE_GATES
        if f'"{name}"' in text or (name in constants and f"({constants[name]})" in text)
    }
    settable = {name for name, gate in FEATURE_GATES.items() if gate.changes_decisions}
    assert settable - asked == set()
