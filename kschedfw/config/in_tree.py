"""What kube-scheduler v1.36 has in its tree: the default plugins, and what became of older ones."""

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
"""Plugins that v1 of the configuration doesn't know any more."""


WITHOUT_HOOK: Mapping[str, frozenset[ExtensionPoint]] = {
    # There it holds pods back while their victims are being evicted; here eviction is over before the pod is queued.
    "DefaultPreemption": frozenset({ExtensionPoint.PRE_ENQUEUE}),
}
"""Where a plugin takes part in kube-scheduler and has nothing to do here."""
