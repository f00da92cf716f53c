"""Algorithm providers: named lists of plugins, which kube-scheduler v1.20 had in place of default plugins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from kschedfw import EnabledPlugin, ExtensionPoint, Profile, ProfileError
from kschedfw.api import DEFAULT_SCHEDULER_NAME, EMPTY
from kschedfw.config import DEFAULT_GATES, FeatureGates, Origin, PluginCatalog, Preset, SchedulerConfiguration
from kschedfw_legacy.configuration import configuration_of
from kschedfw_legacy.gates import (
    DEFAULT_POD_TOPOLOGY_SPREAD,
    DISABLE_PREEMPTION,
    EVEN_PODS_SPREAD,
    RESOURCE_LIMITS,
)

DEFAULT_PROVIDER = "DefaultProvider"
CLUSTER_AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
PROVIDERS = (DEFAULT_PROVIDER, CLUSTER_AUTOSCALER_PROVIDER)

_SPREAD = "PodTopologySpread"

_PLUGINS: Mapping[ExtensionPoint, tuple[str, ...]] = {
    ExtensionPoint.QUEUE_SORT: ("PrioritySort",),
    ExtensionPoint.PRE_FILTER: (
        "NodeResourcesFit",
        "NodePorts",
        _SPREAD,
        "InterPodAffinity",
        "VolumeBinding",
    ),
    ExtensionPoint.FILTER: (
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "EBSLimits",
        "GCEPDLimits",
        "NodeVolumeLimits",
        "AzureDiskLimits",
        "VolumeBinding",
        "VolumeZone",
        _SPREAD,
        "InterPodAffinity",
    ),
    ExtensionPoint.POST_FILTER: ("DefaultPreemption",),
    ExtensionPoint.PRE_SCORE: ("InterPodAffinity", _SPREAD, "TaintToleration"),
    ExtensionPoint.RESERVE: ("VolumeBinding",),
    ExtensionPoint.PRE_BIND: ("VolumeBinding",),
    ExtensionPoint.BIND: ("DefaultBinder",),
}

_SCORES: Mapping[str, int] = {
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    "NodeResourcesLeastAllocated": 1,
    "NodeAffinity": 1,
    "NodePreferAvoidPods": 10000,
    _SPREAD: 2,
    "TaintToleration": 1,
}

_PACKED = {"NodeResourcesLeastAllocated": "NodeResourcesMostAllocated"}


class UnknownProviderError(ProfileError):
    """No algorithm provider has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"algorithm provider {self.name!r} is not registered; there are {', '.join(PROVIDERS)}"


def provider_profile(
    name: str,
    gates: FeatureGates = DEFAULT_GATES,
    *,
    args: Mapping[str, object] = EMPTY,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
) -> Profile:
    """Return the profile of an algorithm provider.

    ClusterAutoscalerProvider prefers full nodes, DefaultProvider empty ones.

    Raises:
        UnknownProviderError: there is none of this name.
    """
    if name not in PROVIDERS:
        raise UnknownProviderError(name)
    spreads = gates.enabled(EVEN_PODS_SPREAD)
    spreads_by_default = spreads and gates.enabled(DEFAULT_POD_TOPOLOGY_SPREAD)
    gone, added = set(), {}
    if gates.enabled(DISABLE_PREEMPTION):
        gone.add("DefaultPreemption")
    if not spreads:
        gone.add(_SPREAD)
    elif not spreads_by_default:
        # The caller's arguments take precedence.
        args = {_SPREAD: {"defaultingType": "List"}, **args}
    if not spreads_by_default:
        gate = DEFAULT_POD_TOPOLOGY_SPREAD if spreads else EVEN_PODS_SPREAD
        added["SelectorSpread"] = f"{name}, without feature gate {gate}"
    if gates.enabled(RESOURCE_LIMITS):
        added["NodeResourceLimits"] = f"{name}, with feature gate {RESOURCE_LIMITS}"

    def enabled(plugin: str, weight: int = 0) -> EnabledPlugin:
        return EnabledPlugin(plugin, weight, Origin.PROVIDER, asked_by=(added.get(plugin, name),))

    points = {
        point: [enabled(plugin) for plugin in plugins if plugin not in gone]
        for point, plugins in _PLUGINS.items()
    }
    points[ExtensionPoint.PRE_SCORE] += map(enabled, added)
    scores = {plugin: weight for plugin, weight in _SCORES.items() if plugin not in gone}
    if name == CLUSTER_AUTOSCALER_PROVIDER:
        # Replaced in place, so that the order of the scores stays.
        scores = {_PACKED.get(plugin, plugin): weight for plugin, weight in scores.items()}
    scores |= dict.fromkeys(added, 1)
    points[ExtensionPoint.SCORE] = [enabled(plugin, weight) for plugin, weight in scores.items()]
    return Profile(points=points, args=args, scheduler_name=scheduler_name)


def provider_configuration(name: str, catalog: PluginCatalog, gates: FeatureGates) -> SchedulerConfiguration:
    """Return the configuration for an algorithm provider. Unavailable plugins are left out, with a warning.

    Raises:
        UnknownProviderError: there is none of this name.
    """
    profile = provider_profile(name, gates)
    return configuration_of(profile, catalog, source=f"algorithm provider {name}")


DEFAULT_PRESET: Final = Preset(partial(provider_configuration, DEFAULT_PROVIDER))
CLUSTER_AUTOSCALER_PRESET: Final = Preset(partial(provider_configuration, CLUSTER_AUTOSCALER_PROVIDER))
