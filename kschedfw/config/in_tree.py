"""The in-tree plugins of kube-scheduler v1.36: the default ones, and those that were removed."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint

DEFAULT_PLUGINS = (
    EnabledPlugin("SchedulingGates"),
    EnabledPlugin("PrioritySort"),
    EnabledPlugin("NodeUnschedulable"),
    EnabledPlugin("NodeName"),
    EnabledPlugin("TaintToleration", weight=3),
    EnabledPlugin("NodeAffinity", weight=2),
    EnabledPlugin("NodePorts"),
    EnabledPlugin("NodeResourcesFit", weight=1),
    EnabledPlugin("VolumeRestrictions"),
    EnabledPlugin("NodeVolumeLimits"),
    EnabledPlugin("VolumeBinding", weight=1),
    EnabledPlugin("VolumeZone"),
    EnabledPlugin("PodTopologySpread", weight=2),
    EnabledPlugin("InterPodAffinity", weight=2),
    EnabledPlugin("DynamicResources", weight=2),
    EnabledPlugin("DefaultPreemption"),
    EnabledPlugin("NodeResourcesBalancedAllocation", weight=1),
    EnabledPlugin("ImageLocality", weight=1),
    EnabledPlugin("DefaultBinder"),
    EnabledPlugin("NodeDeclaredFeatures"),
)
"""v1.36's multiPoint list, in its order and with its weights."""

REMOVED_IN_V1 = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that v1 of the configuration no longer has."""


WITHOUT_HOOK: Mapping[str, frozenset[ExtensionPoint]] = {
    # In kube-scheduler it gates pods until their victims are deleted; here victims are deleted before the pod is
    # queued again.
    "DefaultPreemption": frozenset({ExtensionPoint.PRE_ENQUEUE}),
}
"""The points at which a plugin has a hook in kube-scheduler, but not here, with the reason."""
