"""The in-tree plugins of kube-scheduler v1.36: the default profile, and those that were removed."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.api.frozendict import EMPTY
from kschedfw.framework.gate_table import (
    GANG_SCHEDULING,
    NODE_DECLARED_FEATURES,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
)
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.profile import EnabledPlugin, Origin, Profile


def _default(name: str, weight: int = 0) -> EnabledPlugin:
    return EnabledPlugin(name, weight, Origin.DEFAULT)


# kube-scheduler doubles the weights of scores that users' preferences make, and triples that of taints, by which more
# and more clusters group their nodes.
_ALWAYS = (
    _default("SchedulingGates"),
    _default("PrioritySort"),
    _default("NodeUnschedulable"),
    _default("NodeName"),
    _default("TaintToleration", weight=3),
    _default("NodeAffinity", weight=2),
    _default("NodePorts"),
    _default("NodeResourcesFit", weight=1),
    _default("VolumeRestrictions"),
    _default("NodeVolumeLimits"),
    _default("VolumeBinding", weight=1),
    _default("VolumeZone"),
    _default("PodTopologySpread", weight=2),
    _default("InterPodAffinity", weight=2),
    _default("DynamicResources", weight=2),
    _default("DefaultPreemption"),
    _default("NodeResourcesBalancedAllocation", weight=1),
    _default("ImageLocality", weight=1),
    _default("DefaultBinder"),
)
"""v1.36's multiPoint list, in its order and with its weights, without the plugins that depend on gates."""

_GATED_PLUGINS = (
    (NODE_DECLARED_FEATURES, (_default("NodeDeclaredFeatures"),)),
    (GANG_SCHEDULING, (_default("GangScheduling"),)),
    (
        TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
        (_default("TopologyPlacementGenerator"), _default("PodGroupPodsCount", weight=1)),
    ),
)
"""The plugins that feature gates append to the multiPoint list."""


def default_plugins(gates: FeatureGates = DEFAULT_GATES) -> tuple[EnabledPlugin, ...]:
    """Return the plugins that a profile has at multiPoint with these gates."""
    gated = (plugin for gate, plugins in _GATED_PLUGINS if gates.enabled(gate) for plugin in plugins)
    return (*_ALWAYS, *gated)


DEFAULT_PLUGINS = default_plugins()
"""The plugins of a profile at multiPoint with v1.36's default gates."""

REMOVED_IN_V1 = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that v1 of the configuration no longer has."""


def default_profile(
    args: Mapping[str, object] = EMPTY, feature_gates: FeatureGates = DEFAULT_GATES
) -> Profile:
    """Return the default profile with these gates, with arguments for some of its plugins (see `Profile.args`)."""
    return Profile(multi_point=default_plugins(feature_gates), args=args)
