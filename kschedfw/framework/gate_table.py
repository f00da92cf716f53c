"""kube-scheduler's feature gates: their state in each version, and their effect here.

The table has the gates that kube-scheduler asks. Installed distributions add theirs, such as those that change
a Policy, by entry points of the group `kschedfw.feature_gates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

import attrs

from kschedfw.api.extensions import Extensions
from kschedfw.api.frozendict import FrozenDict

GENERIC_WORKLOAD: Final = "GenericWorkload"
GANG_SCHEDULING: Final = "GangScheduling"
TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: Final = "TopologyAwareWorkloadScheduling"
WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"
OPPORTUNISTIC_BATCHING: Final = "OpportunisticBatching"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"

VERSIONS: Final = ("1.34", "1.35", "1.36", "1.37")
REFERENCE: Final = "1.36"
"""The version whose semantics kschedfw has; its defaults hold unless the caller names another version."""


class Stage(StrEnum):
    """The stage of a feature."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"
    DEPRECATED = "deprecated"


@attrs.frozen
class GateState:
    """The state of a gate in a version of Kubernetes. A locked gate can't be set to anything but its default."""

    stage: Stage
    default: bool
    locked: bool = False


def _states(states: Mapping[str, GateState]) -> FrozenDict[str, GateState]:
    return FrozenDict(states)


@attrs.frozen
class FeatureGate:
    """A feature gate: its states, and what it changes.

    An entry point of the group `kschedfw.feature_gates` has the gate's name and refers to a FeatureGate.

    Args:
        states: by the version of Kubernetes from which on they hold.
        effect: what it changes while it is on.
        needs: the gates without which it can't be on.
        only: the one value whose behaviour is here; None if it can be turned on and off.
        removed: the version without it; empty if none is known.
        merged_into: the gate that has its effect since then.
        instead: what to write in a KubeSchedulerConfiguration after its removal.
    """

    states: FrozenDict[str, GateState] = attrs.field(converter=_states)
    effect: str
    needs: tuple[str, ...] = ()
    only: bool | None = None
    removed: str = ""
    merged_into: str = ""
    instead: str = ""

    def at(self, version: str) -> GateState | None:
        """Return the gate's state in a version of Kubernetes; None if that version doesn't have it."""
        if self.removed and _number(version) >= _number(self.removed):
            return None
        since = [each for each in self.states if _number(each) <= _number(version)]
        return self.states[max(since, key=_number)] if since else None

    @property
    def last(self) -> GateState:
        """The gate's latest state."""
        return self.states[max(self.states, key=_number)]


# A FeatureGates compares a thousand versions, of which about 40 differ.
@lru_cache(maxsize=256)
def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


DECLARED_GATES: Final = Extensions("kschedfw.feature_gates", "feature gate", FeatureGate)
"""The gates of installed distributions, by name."""


def _alpha(since: str) -> dict[str, GateState]:
    return {since: GateState(Stage.ALPHA, False)}


def _beta(since: str, *, default: bool = True) -> dict[str, GateState]:
    return {since: GateState(Stage.BETA, default)}


def _ga(since: str, *, locked: bool = True) -> dict[str, GateState]:
    return {since: GateState(Stage.GA, True, locked)}


_DRA: Final = ("DynamicResourceAllocation",)
_OUTSIDE: Final = "nothing: outside scheduling"

FEATURE_GATES: Final[Mapping[str, FeatureGate]] = {
    "ClearingNominatedNodeNameAfterBinding": FeatureGate(_alpha("1.34") | _beta("1.35"), _OUTSIDE),
    "CompositePodGroup": FeatureGate(
        _alpha("1.37"),
        "groups of groups",
        needs=(GENERIC_WORKLOAD, TOPOLOGY_AWARE_WORKLOAD_SCHEDULING),
        only=False,
    ),
    "DRAAdminAccess": FeatureGate(
        _alpha("1.32") | _beta("1.34") | _ga("1.36"), "claims with admin access", needs=_DRA, only=True
    ),
    "DRAConsumableCapacity": FeatureGate(
        _alpha("1.34") | _beta("1.36"), "shares of a device's capacity", needs=_DRA, only=True
    ),
    "DRADerivedAttributes": FeatureGate(
        _alpha("1.37"), "attributes of devices that are derived from others", needs=_DRA, only=False
    ),
    "DRADeviceBindingConditions": FeatureGate(
        _alpha("1.34") | _beta("1.36"),
        "binding waits until devices are prepared",
        needs=(*_DRA, "DRAResourceClaimDeviceStatus"),
        only=True,
    ),
    "DRADeviceCompatibilityGroups": FeatureGate(
        _alpha("1.37"),
        "partitions of a device that can't be used together",
        needs=("DRAPartitionableDevices",),
        only=False,
    ),
    "DRADeviceTaintRules": FeatureGate(
        _alpha("1.35") | _beta("1.36", default=False) | _ga("1.37", locked=False),
        "taints of devices by DeviceTaintRule",
        needs=("DRADeviceTaints",),
        only=False,
    ),
    "DRADeviceTaints": FeatureGate(
        _alpha("1.33") | _beta("1.36") | _ga("1.37", locked=False),
        "taints and tolerations of devices",
        needs=_DRA,
        only=True,
    ),
    "DRAExtendedResource": FeatureGate(
        _alpha("1.34") | _beta("1.36") | _ga("1.37"),
        "devices for extended resources",
        needs=_DRA,
        only=True,
    ),
    "DRAFractionalCapacityRange": FeatureGate(
        _beta("1.37"), "fractions in the capacity policies of devices", needs=_DRA, only=False
    ),
    "DRAListTypeAttributes": FeatureGate(
        _alpha("1.36"), "attributes of devices that are lists", needs=_DRA, only=False
    ),
    "DRANodeAllocatableResources": FeatureGate(
        _alpha("1.36"), "devices count as CPU or memory of their node", needs=_DRA, only=False
    ),
    "DRAOptionalNodeOperations": FeatureGate(
        _alpha("1.37"), "devices that need no preparation on the node", needs=_DRA, only=False
    ),
    "DRAPartitionableDevices": FeatureGate(
        _alpha("1.33") | _beta("1.36"), "partitions of devices", needs=_DRA, only=True
    ),
    "DRAPrioritizedList": FeatureGate(
        _alpha("1.33") | _beta("1.34") | _ga("1.36", locked=False) | _ga("1.37"),
        "alternatives in requests for devices",
        needs=_DRA,
        only=True,
    ),
    "DRAResourceClaimDeviceStatus": FeatureGate(
        _alpha("1.32") | _beta("1.33") | _ga("1.37"), "drivers report the state of devices", only=True
    ),
    "DRASchedulerFilterTimeout": FeatureGate(
        _beta("1.34"), "a time limit for the search for devices on a node", needs=_DRA, only=True
    ),
    "DRAWorkloadResourceClaims": FeatureGate(
        _alpha("1.36") | _beta("1.37", default=False),
        "claims that belong to a group of pods",
        needs=(*_DRA, GENERIC_WORKLOAD),
        only=False,
    ),
    "DynamicResourceAllocation": FeatureGate(
        _beta("1.32", default=False) | _ga("1.34", locked=False) | _ga("1.35"), "resource claims", only=True
    ),
    GANG_SCHEDULING: FeatureGate(
        _alpha("1.35"),
        "a group with the policy gang waits for its minCount; GangScheduling is a default plugin",
        needs=(GENERIC_WORKLOAD,),
        removed="1.37",
        merged_into=GENERIC_WORKLOAD,
    ),
    GENERIC_WORKLOAD: FeatureGate(
        _alpha("1.35") | _beta("1.37", default=False),
        "pods with spec.schedulingGroup are taken from the queue and scheduled together with their group",
    ),
    "InPlacePodLevelResourcesVerticalScaling": FeatureGate(
        _alpha("1.35") | _beta("1.36"),
        "running pods change their own requests",
        needs=("InPlacePodVerticalScaling", NODE_DECLARED_FEATURES, "PodLevelResources"),
        only=True,
    ),
    "InPlacePodVerticalScaling": FeatureGate(
        _beta("1.33") | _ga("1.35"), "running pods change their containers' requests", only=True
    ),
    "InPlacePodVerticalScalingSchedulerPreemption": FeatureGate(
        _alpha("1.37"), "preemption for pods whose resize waits", only=False
    ),
    "InterPodAffinityHostnameFastPath": FeatureGate(
        _alpha("1.37"), "nothing: the same decisions, computed faster"
    ),
    "MatchLabelKeysInPodTopologySpread": FeatureGate(
        _beta("1.27"), "matchLabelKeys of spread constraints", only=True
    ),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": FeatureGate(
        _beta("1.34"),
        "the API server merges matchLabelKeys into the selectors of spread constraints",
        needs=("MatchLabelKeysInPodTopologySpread",),
        only=True,
    ),
    NODE_DECLARED_FEATURES: FeatureGate(
        _alpha("1.35") | _beta("1.36") | _ga("1.37"),
        "nodes must have the features that a pod uses; NodeDeclaredFeatures is a default plugin",
    ),
    "NodeInclusionPolicyInPodTopologySpread": FeatureGate(
        _beta("1.26") | _ga("1.33"),
        "nodeAffinityPolicy and nodeTaintsPolicy of spread constraints",
        only=True,
    ),
    "NominatedNodeNameForExpectation": FeatureGate(
        _alpha("1.34") | _beta("1.35"), "pods that wait before their binding are nominated", only=True
    ),
    OPPORTUNISTIC_BATCHING: FeatureGate(
        _beta("1.35"),
        "the search of a pod is reused for pods like it that follow at once, as long as each fills its node",
    ),
    "PodGroupPreemptionPolicy": FeatureGate(
        _alpha("1.37"), "a preemptionPolicy of groups", needs=(GENERIC_WORKLOAD,), only=False
    ),
    "PodLevelResources": FeatureGate(
        _alpha("1.32") | _beta("1.34"), "requests of a pod as a whole", only=True
    ),
    "SchedulerAsyncAPICalls": FeatureGate(
        _beta("1.34", default=False), "writes beside the scheduling cycle", only=False
    ),
    "SchedulerAsyncPreemption": FeatureGate(
        _alpha("1.32") | _beta("1.33"),
        "evictions after the scheduling cycle, which they are here for groups; a pod's victims are evicted within it",
        needs=("SchedulerQueueingHints",),
        only=False,
    ),
    "SchedulerPopFromBackoffQ": FeatureGate(
        _beta("1.33"), "pods that back off are tried when no other is active", only=True
    ),
    "SchedulerPreQueueingHints": FeatureGate(
        _alpha("1.37"), "nothing: the same pods are woken, found faster"
    ),
    "SchedulerQueueingHints": FeatureGate(
        _beta("1.32") | _ga("1.34"), "plugins say which events wake a pod", only=True
    ),
    "SidecarContainers": FeatureGate(
        _beta("1.29") | _ga("1.33"), "requests of init containers that go on running", only=True
    ),
    "StorageCapacityScoring": FeatureGate(
        _alpha("1.33") | _beta("1.37"),
        "scores by storage capacity; here an argument of VolumeBinding, storageCapacityScoring",
        only=False,
    ),
    "TaintTolerationComparisonOperators": FeatureGate(
        _alpha("1.35"), "the operators Gt and Lt of tolerations", only=False
    ),
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: FeatureGate(
        _alpha("1.36"),
        "a group with a topology constraint goes into one domain; TopologyPlacementGenerator and PodGroupPodsCount are"
        " default plugins",
        needs=(GENERIC_WORKLOAD,),
    ),
    "VolumeAttributesClass": FeatureGate(
        _beta("1.31", default=False) | _ga("1.34", locked=False) | _ga("1.36"), _OUTSIDE
    ),
    "VolumeLimitScaling": FeatureGate(
        _alpha("1.35") | _beta("1.37"), "nodes without the CSI driver of a volume are refused", only=False
    ),
    WORKLOAD_AWARE_PREEMPTION: FeatureGate(
        _alpha("1.36"),
        "a group that fits nowhere preempts as a whole, instead of each member by itself",
        needs=(GANG_SCHEDULING,),
        removed="1.37",
        merged_into=GENERIC_WORKLOAD,
    ),
}
"""kube-scheduler's own gates, by name."""
