"""kube-scheduler's feature gates: their state in each version, and their effect here.

The table has the gates that kube-scheduler asks. Installed distributions add theirs, such as those that change
a Policy, by entry points of the group `kschedfw.feature_gates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.extensions import Extensions
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.records import frozen
from kschedfw.framework.versions import is_since, version_number

GENERIC_WORKLOAD: Final = "GenericWorkload"
GANG_SCHEDULING: Final = "GangScheduling"
TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: Final = "TopologyAwareWorkloadScheduling"
WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"
OPPORTUNISTIC_BATCHING: Final = "OpportunisticBatching"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
TAINT_TOLERATION_COMPARISON_OPERATORS: Final = "TaintTolerationComparisonOperators"
STORAGE_CAPACITY_SCORING: Final = "StorageCapacityScoring"
POD_GROUP_PREEMPTION_POLICY: Final = "PodGroupPreemptionPolicy"
VOLUME_LIMIT_SCALING: Final = "VolumeLimitScaling"
DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"


class Stage(StrEnum):
    """The stage of a feature."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"
    DEPRECATED = "deprecated"


@frozen
class GateState:
    """The state of a gate in a version of Kubernetes. A locked gate can't be set to anything but its default."""

    stage: Stage
    default: bool
    locked: bool = False


def _states(states: Mapping[str, GateState]) -> FrozenDict[str, GateState]:
    return FrozenDict(sorted(states.items(), key=lambda each: version_number(each[0])))


@frozen
class FeatureGate:
    """A feature gate: its states, and what it changes.

    An entry point of the group `kschedfw.feature_gates` has the gate's name and refers to a FeatureGate.

    Args:
        states: by the version of Kubernetes from which on they hold, the oldest version first.
        effect: what it changes while it is on.
        needs: the gates without which it can't be on.
        only: the one value whose behaviour is here; None if it can be turned on and off.
        lacks: what isn't here of the other value, for the error of a gate that is set to it.
        removed: the version without it; empty if none is known.
        merged_into: the gate that has its effect since then.
        instead: what to write in a KubeSchedulerConfiguration after its removal.
        kep: the number of the Kubernetes Enhancement Proposal that has its semantics; 0 if none is known.
    """

    states: FrozenDict[str, GateState] = attrs.field(converter=_states)
    effect: str
    needs: tuple[str, ...] = ()
    only: bool | None = None
    lacks: str = ""
    removed: str = ""
    merged_into: str = ""
    instead: str = ""
    kep: int = 0

    def at(self, version: str) -> GateState | None:
        """Return the gate's state in a version of Kubernetes; None if that version doesn't have it."""
        if self.removed and is_since(version, self.removed):
            return None
        return next((self.states[each] for each in reversed(self.states) if is_since(version, each)), None)

    @property
    def changes_decisions(self) -> bool:
        """True if decisions differ with the gate's value."""
        return self.only is None and not self.effect.startswith("nothing")

    @property
    def source(self) -> str:
        """The gate's KEP, such as `KEP-4049`; empty if none is known."""
        return f"KEP-{self.kep}" if self.kep else ""

    @property
    def last(self) -> GateState:
        """The gate's latest state."""
        return self.states[next(reversed(self.states))]


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
    "ClearingNominatedNodeNameAfterBinding": FeatureGate(_alpha("1.34") | _beta("1.35"), _OUTSIDE, kep=5278),
    "CompositePodGroup": FeatureGate(
        _alpha("1.37"),
        "groups of groups",
        needs=(GENERIC_WORKLOAD, TOPOLOGY_AWARE_WORKLOAD_SCHEDULING),
        only=False,
        lacks="each group is scheduled by itself here, and the groups of a tree would have to be placed together",
        kep=6012,
    ),
    "DRAAdminAccess": FeatureGate(
        _alpha("1.32") | _beta("1.34") | _ga("1.36"),
        "claims with admin access",
        needs=_DRA,
        only=True,
        kep=5018,
    ),
    "DRAConsumableCapacity": FeatureGate(
        _alpha("1.34") | _beta("1.36"), "shares of a device's capacity", needs=_DRA, only=True, kep=5075
    ),
    "DRADerivedAttributes": FeatureGate(
        _alpha("1.37"),
        "attributes of devices that are derived from others",
        needs=_DRA,
        only=False,
        lacks="attributes that are computed from others aren't read",
        kep=6080,
    ),
    "DRADeviceBindingConditions": FeatureGate(
        _alpha("1.34") | _beta("1.36"),
        "binding waits until devices are prepared",
        needs=(*_DRA, "DRAResourceClaimDeviceStatus"),
        only=True,
        kep=5007,
    ),
    "DRADeviceCompatibilityGroups": FeatureGate(
        _alpha("1.37"),
        "partitions of a device that can't be used together",
        needs=("DRAPartitionableDevices",),
        only=False,
        lacks="the allocator compares no groups of partitions",
        kep=5963,
    ),
    DEVICE_TAINT_RULES: FeatureGate(
        _alpha("1.35") | _beta("1.36", default=False) | _ga("1.37", locked=False),
        "taints of devices by DeviceTaintRule",
        needs=("DRADeviceTaints",),
        kep=5055,
    ),
    "DRADeviceTaints": FeatureGate(
        _alpha("1.33") | _beta("1.36") | _ga("1.37", locked=False),
        "taints and tolerations of devices",
        needs=_DRA,
        only=True,
        kep=5055,
    ),
    "DRAExtendedResource": FeatureGate(
        _alpha("1.34") | _beta("1.36") | _ga("1.37"),
        "devices for extended resources",
        needs=_DRA,
        only=True,
        kep=5004,
    ),
    "DRAFractionalCapacityRange": FeatureGate(
        _beta("1.37"),
        "ranges of capacities with fractions are counted in thousandths, and not in whole numbers",
        needs=_DRA,
        kep=5075,
    ),
    "DRAListTypeAttributes": FeatureGate(
        _alpha("1.36"),
        "attributes of devices that are lists",
        needs=_DRA,
        only=False,
        lacks="attributes that are lists aren't read",
        kep=5491,
    ),
    "DRANodeAllocatableResources": FeatureGate(
        _alpha("1.36"),
        "devices count as CPU or memory of their node",
        needs=_DRA,
        only=False,
        lacks="requests don't count what claims take of a node's CPU and memory",
        kep=5517,
    ),
    "DRAOptionalNodeOperations": FeatureGate(
        _alpha("1.37"),
        "devices that need no preparation on the node",
        needs=_DRA,
        only=False,
        lacks="each device is prepared on its node",
    ),
    "DRAPartitionableDevices": FeatureGate(
        _alpha("1.33") | _beta("1.36"), "partitions of devices", needs=_DRA, only=True, kep=4815
    ),
    "DRAPrioritizedList": FeatureGate(
        _alpha("1.33") | _beta("1.34") | _ga("1.36", locked=False) | _ga("1.37"),
        "alternatives in requests for devices",
        needs=_DRA,
        only=True,
        kep=4816,
    ),
    "DRAResourceClaimDeviceStatus": FeatureGate(
        _alpha("1.32") | _beta("1.33") | _ga("1.37"),
        "drivers report the state of devices",
        only=True,
        kep=4817,
    ),
    "DRASchedulerFilterTimeout": FeatureGate(
        _beta("1.34"), "a time limit for the search for devices on a node", needs=_DRA, only=True, kep=4381
    ),
    "DRAWorkloadResourceClaims": FeatureGate(
        _alpha("1.36") | _beta("1.37", default=False),
        "claims that belong to a group of pods",
        needs=(*_DRA, GENERIC_WORKLOAD),
        only=False,
        lacks="a claim belongs to pods, not to a group",
        kep=5729,
    ),
    "DynamicResourceAllocation": FeatureGate(
        _beta("1.32", default=False) | _ga("1.34", locked=False) | _ga("1.35"),
        "resource claims",
        only=True,
        kep=4381,
    ),
    GANG_SCHEDULING: FeatureGate(
        _alpha("1.35"),
        "a group with the policy gang waits for its minCount; GangScheduling is a default plugin",
        needs=(GENERIC_WORKLOAD,),
        removed="1.37",
        merged_into=GENERIC_WORKLOAD,
        kep=4671,
    ),
    GENERIC_WORKLOAD: FeatureGate(
        _alpha("1.35") | _beta("1.37", default=False),
        "pods with spec.schedulingGroup are taken from the queue and scheduled together with their group",
        kep=4671,
    ),
    "InPlacePodLevelResourcesVerticalScaling": FeatureGate(
        _alpha("1.35") | _beta("1.36"),
        "running pods change their own requests",
        needs=("InPlacePodVerticalScaling", NODE_DECLARED_FEATURES, "PodLevelResources"),
        only=True,
        kep=5419,
    ),
    "InPlacePodVerticalScaling": FeatureGate(
        _beta("1.33") | _ga("1.35"), "running pods change their containers' requests", only=True, kep=1287
    ),
    "InPlacePodVerticalScalingSchedulerPreemption": FeatureGate(
        _alpha("1.37"),
        "preemption for pods whose resize waits",
        only=False,
        lacks="only pods without a node preempt",
    ),
    "InterPodAffinityHostnameFastPath": FeatureGate(
        _alpha("1.37"), "nothing: the same decisions, computed faster"
    ),
    "MatchLabelKeysInPodTopologySpread": FeatureGate(
        _beta("1.27"), "matchLabelKeys of spread constraints", only=True, kep=3243
    ),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": FeatureGate(
        _beta("1.34"),
        "the API server merges matchLabelKeys into the selectors of spread constraints",
        needs=("MatchLabelKeysInPodTopologySpread",),
        only=True,
        kep=3243,
    ),
    NODE_DECLARED_FEATURES: FeatureGate(
        _alpha("1.35") | _beta("1.36") | _ga("1.37"),
        "nodes must have the features that a pod uses; NodeDeclaredFeatures is a default plugin",
        kep=5328,
    ),
    "NodeInclusionPolicyInPodTopologySpread": FeatureGate(
        _beta("1.26") | _ga("1.33"),
        "nodeAffinityPolicy and nodeTaintsPolicy of spread constraints",
        only=True,
        kep=3094,
    ),
    "NominatedNodeNameForExpectation": FeatureGate(
        _alpha("1.34") | _beta("1.35"),
        "pods that wait before their binding are nominated",
        only=True,
        kep=5278,
    ),
    OPPORTUNISTIC_BATCHING: FeatureGate(
        _beta("1.35"),
        "the search of a pod is reused for pods like it that follow at once, as long as each fills its node",
        kep=5598,
    ),
    POD_GROUP_PREEMPTION_POLICY: FeatureGate(
        _alpha("1.37"),
        "members of a group must have its preemptionPolicy, PreemptLowerPriority if it has none",
        needs=(GENERIC_WORKLOAD,),
    ),
    "PodLevelResources": FeatureGate(
        _alpha("1.32") | _beta("1.34"), "requests of a pod as a whole", only=True, kep=2837
    ),
    "SchedulerAsyncAPICalls": FeatureGate(
        _beta("1.34", default=False),
        "writes beside the scheduling cycle",
        only=False,
        lacks="writes are made where they are decided on",
        kep=5229,
    ),
    "SchedulerAsyncPreemption": FeatureGate(
        _alpha("1.32") | _beta("1.33"),
        "evictions after the scheduling cycle, which they are here for groups; a pod's victims are evicted within it",
        needs=("SchedulerQueueingHints",),
        only=False,
        lacks="a pod's victims are evicted within its cycle",
        kep=4832,
    ),
    "SchedulerPopFromBackoffQ": FeatureGate(
        _beta("1.33"), "pods that back off are tried when no other is active", only=True, kep=5142
    ),
    "SchedulerPreQueueingHints": FeatureGate(
        _alpha("1.37"), "nothing: the same pods are woken, found faster", kep=6132
    ),
    "SchedulerQueueingHints": FeatureGate(
        _beta("1.32") | _ga("1.34"), "plugins say which events wake a pod", only=True, kep=4247
    ),
    "SidecarContainers": FeatureGate(
        _beta("1.29") | _ga("1.33"), "requests of init containers that go on running", only=True, kep=753
    ),
    STORAGE_CAPACITY_SCORING: FeatureGate(
        _alpha("1.33") | _beta("1.37"),
        "VolumeBinding scores nodes: by how full a volume would be, and how much storage would be left",
        kep=4049,
    ),
    TAINT_TOLERATION_COMPARISON_OPERATORS: FeatureGate(
        _alpha("1.35"),
        "the operators Gt and Lt of tolerations",
        kep=5471,
    ),
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: FeatureGate(
        _alpha("1.36"),
        "a group with a topology constraint goes into one domain; TopologyPlacementGenerator and PodGroupPodsCount are"
        " default plugins",
        needs=(GENERIC_WORKLOAD,),
        kep=5732,
    ),
    "VolumeAttributesClass": FeatureGate(
        _beta("1.31", default=False) | _ga("1.34", locked=False) | _ga("1.36"), _OUTSIDE, kep=3751
    ),
    VOLUME_LIMIT_SCALING: FeatureGate(
        _alpha("1.35") | _beta("1.37"),
        "nodes without the CSI driver of a volume are refused, if the CSIDriver has preventPodSchedulingIfMissing",
        kep=5030,
    ),
    WORKLOAD_AWARE_PREEMPTION: FeatureGate(
        _alpha("1.36"),
        "a group that fits nowhere preempts as a whole, instead of each member by itself",
        needs=(GANG_SCHEDULING,),
        removed="1.37",
        merged_into=GENERIC_WORKLOAD,
        kep=5710,
    ),
}
"""kube-scheduler's own gates, by name."""
