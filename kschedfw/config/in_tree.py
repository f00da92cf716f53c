"""What kube-scheduler v1.36 has in its tree: the default plugins, and those that this version of kschedfw lacks.

A configuration may name what is lacking, and its arguments are checked. Profiles are built without it, and
`kschedfw config show` says so. A plugin that comes to kschedfw is taken out of `ABSENT`, and that is all.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

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
)
"""v1.36's multiPoint list, in its order and with its weights; without declared features."""

REMOVED_IN_V1 = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that v1 of the configuration doesn't know any more."""


@attrs.frozen
class AbsentPlugin:
    """The extension points of a plugin that isn't in this version, and its arguments."""

    points: frozenset[ExtensionPoint]
    args_type: type[object] | None = None


def _at(*points: str, args_type: type[object] | None = None) -> AbsentPlugin:
    return AbsentPlugin(frozenset(map(ExtensionPoint, points)), args_type)


ABSENT: Mapping[str, AbsentPlugin] = {
    "NodeDeclaredFeatures": _at("preFilter", "filter"),
}
"""By name: what is in kube-scheduler's tree and not in this version."""

WITHOUT_HOOK: Mapping[str, frozenset[ExtensionPoint]] = {
    # There it holds pods back while their victims are being evicted; here eviction is over before the pod is queued.
    "DefaultPreemption": frozenset({ExtensionPoint.PRE_ENQUEUE}),
}
"""Where a plugin takes part in kube-scheduler and has nothing to do here."""
