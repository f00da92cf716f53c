"""What kube-scheduler v1.36 has in its tree: the default plugins, and those that this version of kschedfw lacks.

A configuration may name what is lacking, and its arguments are checked. Profiles are built without it, and
`kschedfw config show` says so. A plugin that comes to kschedfw is taken out of `ABSENT`, and that is all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kschedfw.api.field_errors import FieldError
from kschedfw.api.scalars import Duration
from kschedfw.framework.clock import format_duration
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
    EnabledPlugin("DefaultPreemption"),
    EnabledPlugin("NodeResourcesBalancedAllocation", weight=1),
    EnabledPlugin("ImageLocality", weight=1),
    EnabledPlugin("DefaultBinder"),
    EnabledPlugin("NodeDeclaredFeatures"),
)
"""v1.36's multiPoint list, in its order and with its weights; without dynamic resources."""

REMOVED_IN_V1 = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that v1 of the configuration doesn't know any more."""


@attrs.frozen
class DynamicResourcesArgs:
    """How long allocation may take for a node, and binding altogether."""

    filter_timeout: Duration = 10.0
    binding_timeout: Duration = 600.0

    def validate(self) -> Iterator[FieldError]:
        if self.filter_timeout < 0:
            given = format_duration(self.filter_timeout)
            yield FieldError.invalid("filterTimeout", given, "must be zero or positive")
        if self.binding_timeout < 1:
            given = format_duration(self.binding_timeout)
            yield FieldError.invalid("bindingTimeout", given, "must be at least 1 second")


@attrs.frozen
class AbsentPlugin:
    """The extension points of a plugin that isn't in this version, and its arguments."""

    points: frozenset[ExtensionPoint]
    args_type: type[object] | None = None


def _at(*points: str, args_type: type[object] | None = None) -> AbsentPlugin:
    return AbsentPlugin(frozenset(map(ExtensionPoint, points)), args_type)


ABSENT: Mapping[str, AbsentPlugin] = {
    "DynamicResources": _at(
        "preEnqueue",
        "preFilter",
        "filter",
        "postFilter",
        "score",
        "reserve",
        "preBind",
        args_type=DynamicResourcesArgs,
    ),
}
"""By name: what is in kube-scheduler's tree and not in this version."""

WITHOUT_HOOK: Mapping[str, frozenset[ExtensionPoint]] = {
    # There it holds pods back while their victims are being evicted; here eviction is over before the pod is queued.
    "DefaultPreemption": frozenset({ExtensionPoint.PRE_ENQUEUE}),
}
"""Where a plugin takes part in kube-scheduler and has nothing to do here."""
