"""Converts a Policy to a configuration with one profile that makes the same decisions.

Semantics: kube-scheduler v1.20 `createFromConfig` and `LegacyRegistry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kschedfw import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.api import DEFAULT_SCHEDULER_NAME
from kschedfw.config import (
    DEFAULT_GATES,
    ConfigurationDocument,
    ConfigurationError,
    ConfigurationKind,
    FeatureGates,
    Origin,
    PluginCatalog,
    SchedulerConfiguration,
    with_ignored_resources,
)
from kschedfw_legacy.configuration import configuration_of
from kschedfw_legacy.gates import (
    DEFAULT_POD_TOPOLOGY_SPREAD,
    DISABLE_PREEMPTION,
    EVEN_PODS_SPREAD,
    RESOURCE_LIMITS,
    TAINT_NODES_BY_CONDITION,
)
from kschedfw_legacy.policy.arguments import CustomArguments
from kschedfw_legacy.policy.model import Policy
from kschedfw_legacy.policy.reading import CONFIG_MAP_KEY, VERSIONS, policy_of
from kschedfw_legacy.policy.tables import (
    DEFAULT_BY_CONDITION,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    EQUAL,
    EVEN_PODS,
    EVEN_PODS_PRIORITY,
    MANDATORY_BY_CONDITION,
    MANDATORY_PREDICATES,
    NODE_LABEL,
    PRE_SCORE,
    PREDICATE_ALIASES,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
    RESOURCE_LIMITS_PRIORITY,
    SCORE,
    SELECTOR_SPREAD,
    SERVICE_AFFINITY,
    Placement,
)
from kschedfw_legacy.policy.validation import gated_errors, policy_errors

_SPREAD = "PodTopologySpread"
_AFFINITY = "InterPodAffinity"


def policy_profile(
    policy: Policy,
    gates: FeatureGates = DEFAULT_GATES,
    *,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    source: str = "Policy",
) -> Profile:
    """Return the profile with the policy's plugins.

    Each plugin's `asked_by` names the predicates and priorities it serves.

    Extenders aren't part of a profile; NodeResourcesFit ignores the resources that only they manage. `source` is the
    policy's name in errors.

    Raises:
        ConfigurationError: kube-scheduler would refuse the policy.
    """
    if errors := (*policy_errors(policy), *gated_errors(policy, gates)):
        raise ConfigurationError(source, errors)
    custom = CustomArguments.of(policy)
    plugins = _Plugins()
    plugins.enable(("PrioritySort", (ExtensionPoint.QUEUE_SORT,)), "always")
    if not gates.enabled(DISABLE_PREEMPTION):
        plugins.enable(("DefaultPreemption", (ExtensionPoint.POST_FILTER,)), "always")
    plugins.enable(("DefaultBinder", (ExtensionPoint.BIND,)), "always")
    predicates = _predicates(policy, gates)
    for name, placements in PREDICATES.items():
        for placement in placements:
            for reason in predicates.get(name, ()):
                plugins.enable(placement, reason)
    priorities = _priorities(policy, gates)
    # By name, as in v1.20. The order decides which weight a plugin has that serves several priorities.
    for key in sorted(priorities):
        weight, reasons = priorities[key]
        for reason in reasons:
            plugins.enable(_placement(key, gates), reason, weight * custom.multiplicity(key))
    profile = Profile(
        points=plugins.lists(),
        args=_args(policy, gates, plugins, priorities, custom),
        scheduler_name=scheduler_name,
        run_all_filters=policy.always_check_all_predicates,
    )
    return with_ignored_resources(profile, policy.extenders)


@attrs.define
class _Plugins:
    """Collects the plugins of each extension point."""

    points: dict[ExtensionPoint, dict[str, int]] = attrs.field(factory=dict)
    reasons: dict[str, list[str]] = attrs.field(factory=dict)

    def enable(self, placement: Placement, reason: str, weight: int = 0) -> None:
        name, points = placement
        for point in points:
            # As in kube-scheduler, the weight of a plugin is that of the first priority that it serves.
            self.points.setdefault(point, {}).setdefault(name, weight if point is ExtensionPoint.SCORE else 0)
        reasons = self.reasons.setdefault(name, [])
        if reason not in reasons:
            reasons.append(reason)

    def lists(self) -> dict[ExtensionPoint, tuple[EnabledPlugin, ...]]:
        return {
            point: tuple(
                EnabledPlugin(name, weight, Origin.POLICY, asked_by=tuple(self.reasons[name]))
                for name, weight in listed.items()
            )
            for point, listed in self.points.items()
        }


def _predicates(policy: Policy, gates: FeatureGates) -> dict[str, list[str]]:
    """Return the predicates by their names in `PREDICATES`, each with the policy's entries that enable it."""
    reasons: dict[str, list[str]] = {}
    by_taint = gates.enabled(TAINT_NODES_BY_CONDITION)
    if policy.predicates is None:
        for name in DEFAULT_PREDICATES if by_taint else (*DEFAULT_PREDICATES, *DEFAULT_BY_CONDITION):
            if name != EVEN_PODS or gates.enabled(EVEN_PODS_SPREAD):
                reasons[name] = [f"default predicate {name}"]
    for predicate in policy.predicates or ():
        name = PREDICATE_ALIASES.get(predicate.name, predicate.name)
        if name not in PREDICATES:
            # `policy_errors` has refused unknown names without an argument.
            assert predicate.argument is not None
            name = NODE_LABEL if predicate.argument.service_affinity is None else SERVICE_AFFINITY
        reasons.setdefault(name, []).append(f"predicate {predicate.name}")
    for name in MANDATORY_PREDICATES if by_taint else MANDATORY_BY_CONDITION:
        reasons.setdefault(name, [f"mandatory predicate {name}"])
    return reasons


def _priorities(policy: Policy, gates: FeatureGates) -> dict[str, tuple[int, list[str]]]:
    """Return the priorities by name, custom ones by plugin, each with its weight and the entries that enable it."""
    if policy.priorities is None:
        found = {name: (weight, [f"default priority {name}"]) for name, weight in DEFAULT_PRIORITIES.items()}
        if not gates.enabled(EVEN_PODS_SPREAD):
            del found[EVEN_PODS_PRIORITY]
        if gates.enabled(RESOURCE_LIMITS):
            found[RESOURCE_LIMITS_PRIORITY] = (1, [f"default priority {RESOURCE_LIMITS_PRIORITY}"])
        return found
    found = {}
    for priority in policy.priorities:
        if priority.name == EQUAL:
            continue
        key = PRIORITY_ALIASES.get(priority.name, priority.name)
        if key not in PRIORITIES:
            assert priority.argument is not None
            key = CustomArguments.plugin_of(priority.argument)
        _, reasons = found.get(key, (0, []))
        # Custom priorities of one plugin have equal weights: `policy_errors` has checked it. Of other duplicates the
        # last counts.
        found[key] = (priority.weight, [*reasons, f"priority {priority.name}"])
    return found


def _placement(key: str, gates: FeatureGates) -> Placement:
    if key == SELECTOR_SPREAD and _spreads_by_default(gates):
        return (_SPREAD, PRE_SCORE)
    return PRIORITIES.get(key, (key, SCORE))


def _spreads_by_default(gates: FeatureGates) -> bool:
    """Return whether PodTopologySpread's default constraints replace SelectorSpread."""
    return gates.enabled(DEFAULT_POD_TOPOLOGY_SPREAD) and gates.enabled(EVEN_PODS_SPREAD)


def _args(
    policy: Policy,
    gates: FeatureGates,
    plugins: _Plugins,
    priorities: Mapping[str, object],
    custom: CustomArguments,
) -> dict[str, object]:
    args = custom.args()
    if _SPREAD in plugins.reasons:
        # `List` without a list: pods without constraints of their own aren't spread by PodTopologySpread.
        if not _spreads_by_default(gates):
            args[_SPREAD] = {"defaultingType": "List"}
        elif SELECTOR_SPREAD in priorities:
            args[_SPREAD] = {"defaultingType": "System"}
        elif EVEN_PODS_PRIORITY in priorities:
            args[_SPREAD] = {"defaultingType": "List"}
    weight = policy.hard_pod_affinity_symmetric_weight
    if weight and _AFFINITY in plugins.points.get(ExtensionPoint.SCORE, ()):
        args[_AFFINITY] = {"hardPodAffinityWeight": weight}
    return args


def policy_configuration(
    document: ConfigurationDocument, catalog: PluginCatalog, gates: FeatureGates = DEFAULT_GATES
) -> SchedulerConfiguration:
    """Return the configuration for the Policy in the document. Unavailable plugins are left out, with a warning.

    Raises:
        ConfigurationError: the document is invalid. The message lists all errors.
    """
    policy = policy_of(document)
    return configuration_of(
        policy_profile(policy, gates, source=document.source),
        catalog,
        source=document.source,
        api_version=document.api_version,
        extenders=policy.extenders,
        warnings=document.warnings,
    )


POLICY_KIND: Final = ConfigurationKind(VERSIONS, policy_configuration, CONFIG_MAP_KEY)
