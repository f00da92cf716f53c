"""How much a pod takes and a node has, in the integers that scheduling counts in.

Semantics: component-helpers `resource.PodRequests` as kube-scheduler v1.36 calls it (in-place resize and pod-level
resources are on), `framework.Resource.Add` and `qos.ComputePodQOS`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Container, ContainerStatus, Pod
from kschedfw.api.quantity import Quantity
from kschedfw.api.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_pod_level_resource,
    is_scalar_resource,
)

ResourceList = Mapping[str, Quantity]

DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
# What scoring assumes of a container that doesn't say.
_ASSUMED: Final = {CPU: Quantity.parse(f"{DEFAULT_MILLI_CPU}m"), MEMORY: Quantity.parse(DEFAULT_MEMORY)}
_ZERO: Final = Quantity.parse(0)
_NONE: Final[ResourceList] = EMPTY


@attrs.frozen
class ResourceAmounts:
    """Amounts per resource: CPU in thousandths, all else in units (bytes, counts).

    `scalar` holds extended resources, huge pages, attachable volumes and `…kubernetes.io/…`; other names don't
    count. `pods` is how many pods a node takes; it stays 0 for a pod.
    """

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalar: FrozenDict[str, int] = EMPTY
    pods: int = 0


@attrs.frozen(cache_hash=True)
class PodRequests:
    """What a pod asks for. The `non_zero` amounts assume something for containers that name none."""

    amounts: ResourceAmounts
    non_zero_milli_cpu: int
    non_zero_memory: int


class QosClass(StrEnum):
    """How a pod is served when its node runs short (core/v1 PodQOSClass)."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def resource_amounts(resources: ResourceList) -> ResourceAmounts:
    """Count a list of quantities; names that scheduling doesn't know are left out."""
    if not resources:
        return _NO_AMOUNTS
    scalar = {name: amount.value() for name, amount in resources.items() if is_scalar_resource(name)}
    return ResourceAmounts(
        milli_cpu=resources.get(CPU, _ZERO).milli_value(),
        memory=resources.get(MEMORY, _ZERO).value(),
        ephemeral_storage=resources.get(EPHEMERAL_STORAGE, _ZERO).value(),
        scalar=FrozenDict(scalar) if scalar else EMPTY,
        pods=resources.get(PODS, _ZERO).value(),
    )


_NO_AMOUNTS: Final = ResourceAmounts()


def node_allocatable(node: Node) -> ResourceAmounts:
    """What a node has for pods."""
    return resource_amounts(node.status.allocatable)


def pod_requests(pod: Pod) -> PodRequests:
    """What the pod takes on a node, overhead included.

    The containers run together, sidecars beside them; init containers run before, one after the other, each
    beside the sidecars that come before it. The larger of the two counts. Pod-level requests take the place of
    the sum. While a resize is under way, the largest of what is asked for, granted and in effect counts; what is
    asked for doesn't if the node could never grant it.
    """
    requests = total_requests(pod)
    amounts = (
        attrs.evolve(resource_amounts(requests), pods=0) if PODS in requests else resource_amounts(requests)
    )
    assumed: ResourceList = _ASSUMED
    if has_pod_level_requests(pod):
        assumed = {name: amount for name, amount in _ASSUMED.items() if name not in requests}
    elif _leaves_nothing_to_assume(pod):
        assumed = _NONE
    non_zero = total_requests(pod, assumed) if assumed else requests
    own = PodRequests(
        amounts,
        non_zero.get(CPU, _ZERO).milli_value(),
        non_zero.get(MEMORY, _ZERO).value(),
    )
    return _shared(own, tuple(amounts.scalar))


# The order matters, too: messages name resources in it, and must not depend on what was asked for before.
@functools.lru_cache(maxsize=10_000)
def _shared(requests: PodRequests, _order: tuple[str, ...]) -> PodRequests:
    """The same object for pods that ask for the same, as those of a workload do."""
    return requests


def _leaves_nothing_to_assume(pod: Pod) -> bool:
    """Whether every container names CPU and memory, and no status can name less; it saves counting twice."""
    if pod.status.container_statuses or pod.status.init_container_statuses:
        return False
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return all(CPU in each.resources.requests and MEMORY in each.resources.requests for each in containers)


def total_requests(pod: Pod, assumed: ResourceList = _NONE) -> dict[str, Quantity]:
    """The exact requests of a pod; `assumed` stands for what a container doesn't name."""
    total = _of_containers(pod, assumed)
    if has_pod_level_requests(pod) and pod.spec.resources is not None:
        asked: ResourceList = pod.spec.resources.requests
        status = pod.status
        if status.resources is not None:
            if _resize_is_infeasible(pod):
                asked = _NONE
            asked = _largest(asked, status.resources.requests, status.allocated_resources)
        total |= _pod_level(asked)
    _add(total, pod.spec.overhead)
    return total


def spec_requests(pod: Pod) -> dict[str, Quantity]:
    """The exact requests that the pod's spec names, overhead included, whatever came of a resize."""
    total = aggregate(pod, lambda container: container.resources.requests)
    if pod.spec.resources is not None:
        total |= _pod_level(pod.spec.resources.requests)
    _add(total, pod.spec.overhead)
    return total


def spec_limits(pod: Pod) -> dict[str, Quantity]:
    """The exact limits that the pod's spec names; overhead counts where there is a limit (`resource.PodLimits`)."""
    total = aggregate(pod, lambda container: container.resources.limits)
    if pod.spec.resources is not None:
        total |= _pod_level(pod.spec.resources.limits)
    _add(total, {name: amount for name, amount in pod.spec.overhead.items() if name in total})
    return total


def _pod_level(resources: ResourceList) -> dict[str, Quantity]:
    return {name: amount for name, amount in resources.items() if is_pod_level_resource(name)}


def _of_containers(pod: Pod, assumed: ResourceList) -> dict[str, Quantity]:
    asked = aggregate(pod, lambda container: _or_assumed(container.resources.requests, assumed))
    status = pod.status
    if not (status.container_statuses or status.init_container_statuses or status.resources):
        return asked
    infeasible = _resize_is_infeasible(pod)
    granted: ResourceList
    actual: ResourceList
    if status.allocated_resources and status.resources is not None and status.resources.requests:
        granted, actual = status.allocated_resources, status.resources.requests
    else:
        # Names are looked for among the main containers first, as Kubernetes does.
        statuses = {each.name: each for each in (*status.init_container_statuses, *status.container_statuses)}

        def granted_to(container: Container) -> ResourceList:
            return _or_assumed(_granted(container, statuses.get(container.name), infeasible), assumed)

        def actual_of(container: Container) -> ResourceList:
            own = statuses.get(container.name)
            if own is not None and own.resources is not None and own.resources.requests:
                return _or_assumed(own.resources.requests, assumed)
            return granted_to(container)

        granted, actual = aggregate(pod, granted_to), aggregate(pod, actual_of)
    return _largest(actual, granted) if infeasible else _largest(asked, actual, granted)


def _granted(container: Container, status: ContainerStatus | None, infeasible: bool) -> ResourceList:
    if status is not None and status.allocated_resources:
        return status.allocated_resources
    return _NONE if infeasible else container.resources.requests


def _or_assumed(resources: ResourceList, assumed: ResourceList) -> ResourceList:
    return {**assumed, **resources} if assumed else resources


def _resize_is_infeasible(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def aggregate(pod: Pod, resources_of: Callable[[Container], ResourceList]) -> dict[str, Quantity]:
    """What the containers of a pod need at most at any time, where each needs `resources_of` it."""
    total: dict[str, Quantity] = {}
    for container in pod.spec.containers:
        _add(total, resources_of(container))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in pod.spec.init_containers:
        own = resources_of(container)
        if container.is_sidecar:
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            beside = dict(own)
            _add(beside, sidecars)
            _raise_to(peak, beside)
    _raise_to(total, peak)
    return total


def has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level_resource, resources.requests))


def _add(total: dict[str, Quantity], more: ResourceList) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, Quantity], least: ResourceList) -> None:
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _largest(first: ResourceList, *others: ResourceList) -> dict[str, Quantity]:
    result = dict(first)
    for other in others:
        _raise_to(result, other)
    return result


def pod_qos_class(pod: Pod) -> QosClass:
    """Guaranteed if CPU and memory have limits everywhere and requests equal them; BestEffort if nothing is set."""
    pod_level = pod.spec.resources
    if pod_level is not None and any(map(is_pod_level_resource, (*pod_level.requests, *pod_level.limits))):
        parts = [pod_level]
    else:
        parts = [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    requests = _compute_only(part.requests for part in parts)
    limits = _compute_only(part.limits for part in parts)
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    limited = all(part.limits.get(name, _ZERO) > _ZERO for part in parts for name in (CPU, MEMORY))
    return QosClass.GUARANTEED if limited and requests == limits else QosClass.BURSTABLE


def _compute_only(lists: Iterable[ResourceList]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for resources in lists:
        _add(total, {name: resources[name] for name in (CPU, MEMORY) if resources.get(name, _ZERO) > _ZERO})
    return total
