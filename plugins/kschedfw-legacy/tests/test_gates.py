"""Feature gates: a known few, each with a default; everything else is refused."""

from __future__ import annotations

import pytest
from kschedfw_legacy.gates import EVEN_PODS_SPREAD, RESOURCE_LIMITS

from kschedfw.config import FeatureGateError, FeatureGates
from kschedfw.framework.gate_table import DECLARED_GATES


@pytest.mark.parametrize("name", DECLARED_GATES.names())
def test_a_gate_has_its_default_until_it_is_turned(name: str) -> None:
    default = DECLARED_GATES.load(name).last.default
    assert FeatureGates().enabled(name) is default
    assert FeatureGates({name: not default}).enabled(name) is not default


def test_gates_are_read_as_on_the_command_line() -> None:
    gates = FeatureGates.parse(" EvenPodsSpread=false , ResourceLimitsPriorityFunction=T,")
    assert (gates.enabled(EVEN_PODS_SPREAD), gates.enabled(RESOURCE_LIMITS)) == (False, True)
    assert FeatureGates.parse("") == FeatureGates()


CAN_BE_SET = (
    "the gates that can be set are ClearingNominatedNodeNameAfterBinding, DRADeviceTaintRules, "
    "DRAFractionalCapacityRange, DefaultPodTopologySpread, DisablePreemption, EvenPodsSpread, GangScheduling, "
    "GenericWorkload, InterPodAffinityHostnameFastPath, NodeDeclaredFeatures, OpportunisticBatching, "
    "PodGroupPreemptionPolicy, "
    "ResourceLimitsPriorityFunction, SchedulerPreQueueingHints, StorageCapacityScoring, TaintNodesByCondition, "
    "TaintTolerationComparisonOperators, TopologyAwareWorkloadScheduling, VolumeAttributesClass, "
    "VolumeLimitScaling, WorkloadAwarePreemption"
)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(FeatureGateError) as caught:
        FeatureGates.parse("EvenPodSpread=true,Warp=false,DisablePreemption=maybe")
    assert caught.value.problems == (
        'invalid value of DisablePreemption=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        "unrecognized feature gate: EvenPodSpread; did you mean 'EvenPodsSpread'?",
        f"unrecognized feature gate: Warp; {CAN_BE_SET}",
    )


def test_a_gate_that_is_absent_on_purpose_is_refused_with_what_is_done_instead() -> None:
    with pytest.raises(FeatureGateError, match="NodeResourcesBalancedAllocation never counts volumes"):
        FeatureGates.parse("BalanceAttachedNodeVolumes=true")


def test_a_value_is_true_or_false() -> None:
    with pytest.raises(FeatureGateError, match="invalid value of EvenPodsSpread=yes"):
        FeatureGates({EVEN_PODS_SPREAD: "yes"})  # type: ignore[dict-item]  # the point of this test
