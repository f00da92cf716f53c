"""kube-scheduler's default profile."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.api.frozendict import EMPTY
from kschedfw.framework.profile import EnabledPlugin, Profile

DEFAULT_PLUGINS = (
    EnabledPlugin("SchedulingGates"),
    EnabledPlugin("PrioritySort"),
    EnabledPlugin("NodeUnschedulable"),
    EnabledPlugin("NodeName"),
    EnabledPlugin("TaintToleration", weight=3),
    EnabledPlugin("NodeAffinity", weight=2),
    EnabledPlugin("NodePorts"),
    EnabledPlugin("NodeResourcesFit", weight=1),
    EnabledPlugin("PodTopologySpread", weight=2),
    EnabledPlugin("InterPodAffinity", weight=2),
    EnabledPlugin("DefaultPreemption"),
    EnabledPlugin("NodeResourcesBalancedAllocation", weight=1),
    EnabledPlugin("ImageLocality", weight=1),
    EnabledPlugin("DefaultBinder"),
)
"""v1.36's multiPoint list, in its order and with its weights, as far as the plugins are here."""


def default_profile(args: Mapping[str, object] = EMPTY) -> Profile:
    """The default profile, with arguments for some of its plugins (see `Profile.args`)."""
    return Profile(multi_point=DEFAULT_PLUGINS, args=args)
