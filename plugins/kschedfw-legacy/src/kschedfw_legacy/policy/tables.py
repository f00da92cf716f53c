"""Tables of the plugins for each predicate and priority.

The names are those of v1.9–v1.20, the plugins those of v1.20. `PREDICATES` is in the order in which predicates ran.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw import ExtensionPoint

FILTER = (ExtensionPoint.FILTER,)
PRE_FILTER = (ExtensionPoint.PRE_FILTER, ExtensionPoint.FILTER)
BINDS = (*PRE_FILTER, ExtensionPoint.RESERVE, ExtensionPoint.PRE_BIND)
SCORE = (ExtensionPoint.SCORE,)
PRE_SCORE = (ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE)

Points = tuple[ExtensionPoint, ...]
Placement = tuple[str, Points]
"""A plugin, and the extension points at which it is enabled."""

FIT = ("NodeResourcesFit", PRE_FILTER)
NODE_LABEL = "CheckNodeLabelPresence"
SERVICE_AFFINITY = "CheckServiceAffinity"
EVEN_PODS = "EvenPodsSpread"

PREDICATES: Mapping[str, tuple[Placement, ...]] = {
    "CheckNodeCondition": (("CheckNodeCondition", FILTER),),
    "CheckNodeUnschedulable": (("NodeUnschedulable", FILTER),),
    "GeneralPredicates": (
        FIT,
        ("NodeName", FILTER),
        ("NodePorts", PRE_FILTER),
        ("NodeAffinity", FILTER),
    ),
    "HostName": (("NodeName", FILTER),),
    "PodFitsHostPorts": (("NodePorts", PRE_FILTER),),
    "MatchNodeSelector": (("NodeAffinity", FILTER),),
    "PodFitsResources": (FIT,),
    "NoDiskConflict": (("VolumeRestrictions", FILTER),),
    "PodToleratesNodeTaints": (("TaintToleration", FILTER),),
    NODE_LABEL: (("NodeLabel", FILTER),),
    SERVICE_AFFINITY: (("ServiceAffinity", PRE_FILTER),),
    "MaxEBSVolumeCount": (("EBSLimits", FILTER),),
    "MaxGCEPDVolumeCount": (("GCEPDLimits", FILTER),),
    "MaxCSIVolumeCountPred": (("NodeVolumeLimits", FILTER),),
    "MaxAzureDiskVolumeCount": (("AzureDiskLimits", FILTER),),
    "MaxCinderVolumeCount": (("CinderLimits", FILTER),),
    "CheckVolumeBinding": (("VolumeBinding", BINDS),),
    "NoVolumeZoneConflict": (("VolumeZone", FILTER),),
    "CheckNodeMemoryPressure": (("CheckNodeMemoryPressure", FILTER),),
    "CheckNodePIDPressure": (("CheckNodePIDPressure", FILTER),),
    "CheckNodeDiskPressure": (("CheckNodeDiskPressure", FILTER),),
    EVEN_PODS: (("PodTopologySpread", PRE_FILTER),),
    "MatchInterPodAffinity": (("InterPodAffinity", PRE_FILTER),),
}

PREDICATE_ALIASES: Mapping[str, str] = {
    "PodFitsPorts": "PodFitsHostPorts",
    # This predicate was a part of PodToleratesNodeTaints, which is mandatory.
    "PodToleratesNodeNoExecuteTaints": "PodToleratesNodeTaints",
    "NoVolumeNodeConflict": "CheckVolumeBinding",
}
"""Former names of predicates, from before v1.11."""

MANDATORY_PREDICATES = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
MANDATORY_BY_CONDITION = ("CheckNodeCondition",)
"""The mandatory predicates if the gate TaintNodesByCondition is off."""

DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    EVEN_PODS,
)
DEFAULT_BY_CONDITION = ("CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure")

SELECTOR_SPREAD = "SelectorSpreadPriority"
EVEN_PODS_PRIORITY = "EvenPodsSpreadPriority"
RESOURCE_LIMITS_PRIORITY = "ResourceLimitsPriority"
EQUAL = "EqualPriority"
"""The priority that gives every node the same score, and so has no plugin."""

PRIORITIES: Mapping[str, Placement] = {
    "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation", SCORE),
    EVEN_PODS_PRIORITY: ("PodTopologySpread", PRE_SCORE),
    "ImageLocalityPriority": ("ImageLocality", SCORE),
    "InterPodAffinityPriority": ("InterPodAffinity", PRE_SCORE),
    "LeastRequestedPriority": ("NodeResourcesLeastAllocated", SCORE),
    "MostRequestedPriority": ("NodeResourcesMostAllocated", SCORE),
    "NodeAffinityPriority": ("NodeAffinity", SCORE),
    "NodePreferAvoidPodsPriority": ("NodePreferAvoidPods", SCORE),
    RESOURCE_LIMITS_PRIORITY: ("NodeResourceLimits", PRE_SCORE),
    SELECTOR_SPREAD: ("SelectorSpread", PRE_SCORE),
    "TaintTolerationPriority": ("TaintToleration", PRE_SCORE),
}

PRIORITY_ALIASES: Mapping[str, str] = {"ServiceSpreadingPriority": SELECTOR_SPREAD}

DEFAULT_PRIORITIES: Mapping[str, int] = {
    SELECTOR_SPREAD: 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    EVEN_PODS_PRIORITY: 2,
}
