"""The counting of pods by ResourceQuotas, and refusals of new pods (admission plugin ResourceQuota, pod evaluator)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kschedfw.api.pod import Pod
from kschedfw.api.policies import QuotaScope, ResourceQuota, ScopeOperator, ScopeRequirement
from kschedfw.api.quantity import Quantity
from kschedfw.api.requests import QosClass, pod_qos_class, spec_limits, total_requests
from kschedfw.api.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_extended,
    is_huge_pages,
    is_native,
    is_pod_level_resource,
)

_ZERO: Final = Quantity.parse(0)
_ONE: Final = Quantity.parse(1)
_COUNT: Final = "count/pods"
_REQUESTS, _LIMITS = "requests.", "limits."
_COMPUTE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_COUNTED: Final = frozenset(f"{prefix}{name}" for prefix in ("", _REQUESTS, _LIMITS) for name in _COMPUTE) | {
    PODS,
    _COUNT,
}
_REQUIRED: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", _REQUESTS, _LIMITS) for name in (CPU, MEMORY)
)
"""The resources that every container has to name once a quota has them."""


class QuotaUsage:
    """A ResourceQuota, and the amounts in use."""

    def __init__(self, quota: ResourceQuota) -> None:
        self._name, self._hard = quota.name, quota.spec.hard
        self._requirements = quota.spec.requirements
        self._counts_pods = any(map(_is_of_pods, self._hard))
        self._used = dict.fromkeys(self._hard, _ZERO)

    def counts(self, pod: Pod) -> bool:
        """Tell whether the pod is among those that the quota limits."""
        return self._counts_pods and all(_is_in_scope(pod, each) for each in self._requirements)

    def refusal(self, pod: Pod) -> str:
        """Return why the pod, one that the quota counts, would not be created; empty if it would."""
        if lacking := _lacking(pod, _REQUIRED & self._hard.keys()):
            return f"failed quota: {self._name}: must specify {lacking}"
        asked = self._asked(pod)
        exceeded = [name for name in asked if self._used[name] + asked[name] > self._hard[name]]
        if not exceeded:
            return ""
        requested, used, hard = (
            ",".join(f"{name}={amounts[name]}" for name in sorted(exceeded))
            for amounts in (asked, self._used, self._hard)
        )
        return f"exceeded quota: {self._name}, requested: {requested}, used: {used}, limited: {hard}"

    def add(self, pod: Pod) -> None:
        """Count an existing pod."""
        for name, amount in self._asked(pod).items():
            self._used[name] += amount

    def _asked(self, pod: Pod) -> dict[str, Quantity]:
        # An ended pod still counts as an object, but takes no resources.
        if pod.is_terminal:
            return {_COUNT: _ONE} if _COUNT in self._hard else {}
        asked = {_COUNT: _ONE, **_usage(total_requests(pod), spec_limits(pod))}
        return {name: amount for name, amount in asked.items() if name in self._hard}


def _is_of_pods(name: str) -> bool:
    plain = name.removeprefix(_REQUESTS)
    return name in _COUNTED or is_huge_pages(plain) or (plain != name and not is_native(name))


def _usage(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return requests and limits under their names in quotas, which don't limit extended resources."""
    usage = {PODS: _ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or is_huge_pages(name):
            usage[name] = usage[f"{_REQUESTS}{name}"] = amount
        elif is_extended(name):
            usage[f"{_REQUESTS}{name}"] = amount
    return usage | {f"{_LIMITS}{name}": limits[name] for name in _COMPUTE if name in limits}


def _lacking(pod: Pod, required: Iterable[str]) -> str:
    """Return the resources that containers must name and don't, with their containers."""
    own = pod.spec.resources
    if own is not None and any(map(is_pod_level_resource, (*own.requests, *own.limits))):
        # The pod as a whole has resources, so its containers need none.
        return ""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    usages = [(each.name, _usage(each.resources.requests, each.resources.limits)) for each in containers]
    lacking = []
    for name in sorted(required):
        if without := sorted({container for container, usage in usages if name not in usage}):
            lacking.append(f"{name} for: {','.join(without)}")
    return "; ".join(lacking)


def _is_in_scope(pod: Pod, requirement: ScopeRequirement) -> bool:
    match requirement.scope_name:
        case QuotaScope.TERMINATING:
            return _has_deadline(pod)
        case QuotaScope.NOT_TERMINATING:
            return not _has_deadline(pod)
        case QuotaScope.BEST_EFFORT:
            return pod_qos_class(pod) is QosClass.BEST_EFFORT
        case QuotaScope.NOT_BEST_EFFORT:
            return pod_qos_class(pod) is not QosClass.BEST_EFFORT
        case QuotaScope.PRIORITY_CLASS:
            return _has_class(pod.spec.priority_class_name, requirement)
        case QuotaScope.CROSS_NAMESPACE_POD_AFFINITY:
            return any(
                term.namespaces or term.namespace_selector is not None for term in pod.spec.affinity.pod_terms
            )
        case QuotaScope.VOLUME_ATTRIBUTES_CLASS:
            # It is a scope of claims, not of pods.
            return False


def _has_deadline(pod: Pod) -> bool:
    return pod.spec.active_deadline_seconds is not None


def _has_class(name: str, requirement: ScopeRequirement) -> bool:
    match requirement.operator:
        case ScopeOperator.IN:
            return name != "" and name in requirement.values
        case ScopeOperator.NOT_IN:
            return name == "" or name not in requirement.values
        case ScopeOperator.EXISTS:
            return name != ""
        case ScopeOperator.DOES_NOT_EXIST:
            return name == ""
