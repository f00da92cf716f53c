"""The requests of pods and the resources of nodes, as the integers that scheduling computes with.

Semantics: component-helpers `resource.PodRequests` as kube-scheduler v1.36 calls it, and v1.37 where that differs
(in-place resize and pod-level resources are on; node-allocatable resources of claims are off),
`PodInfo.CalculateResource`, `framework.Resource.Add` and `qos.ComputePodQOS`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.containers import Container
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.quantity import Quantity
from kschedfw.api.records import frozen
from kschedfw.api.resource import Resource
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
# The requests that scores assume for a container without any.
_ASSUMED: Final = {CPU: Quantity.parse(f"{DEFAULT_MILLI_CPU}m"), MEMORY: Quantity.parse(DEFAULT_MEMORY)}
_COMPUTE: Final = frozenset({CPU, MEMORY})
_ZERO: Final = Quantity.parse(0)
_NONE: Final[ResourceList] = EMPTY


@frozen(cache_hash=True)
class PodRequests:
    """The requests of a pod, as different plugins count them.

    `amounts` are taken on the pod's node, `demand` must be free on a node for it. They differ only while an
    in-place resize is under way: `demand` is computed from the spec alone.

    NodeResourcesFit's scores assume an amount for containers that request no CPU or memory. `non_zero` is the
    pod's part of its node's sums of such amounts, CPU and memory alone; nothing is assumed for a resource with a
    pod-level request. `scored` are the amounts of a pod that is being scheduled:
    the requests of its containers in the spec, and the overhead. (kube-scheduler v1.36 reads pod-level requests
    everywhere but there.)
    """

    amounts: Resource
    demand: Resource
    scored: Resource
    non_zero: Resource

    @property
    def non_zero_milli_cpu(self) -> int:
        return self.non_zero.milli_cpu

    @property
    def non_zero_memory(self) -> int:
        return self.non_zero.memory


class QosClass(StrEnum):
    """The quality of service of a pod (core/v1 PodQOSClass)."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def resource_amounts(resources: ResourceList) -> Resource:
    """Convert a list of quantities; names that scheduling doesn't know are omitted."""
    if not resources:
        return _NO_AMOUNTS
    cpu, memory = resources.get(CPU, _ZERO).milli_value(), resources.get(MEMORY, _ZERO).value()
    # The usual case: only CPU and memory.
    if _COMPUTE.issuperset(resources):
        return Resource(cpu, memory)
    scalar = {name: amount.value() for name, amount in resources.items() if is_scalar_resource(name)}
    return Resource(
        cpu,
        memory,
        ephemeral_storage=resources.get(EPHEMERAL_STORAGE, _ZERO).value(),
        allowed_pod_number=resources.get(PODS, _ZERO).value(),
        scalar_resources=FrozenDict(scalar) if scalar else EMPTY,
    )


_NO_AMOUNTS: Final = Resource()


def node_allocatable(node: Node) -> Resource:
    """Return the resources that a node has for pods."""
    return resource_amounts(node.status.allocatable)


def pod_requests(pod: Pod, *, largest_sum: bool = False) -> PodRequests:
    """Return the requests of a pod, overhead included.

    Containers and sidecars run at the same time. Init containers run before them, one after the other, each
    together with the sidecars that come before it. The larger of the two amounts counts. Pod-level requests
    replace both. While an in-place resize is under way, the largest of the desired, the allocated and the
    actual amount counts; the desired one doesn't if the resize is infeasible. Up to v1.36 that is the largest amount
    of each container; with `largest_sum`, as since v1.37, the largest sum over the containers.
    """
    total = summed_requests if largest_sum else total_requests
    asked, pod_level = spec_requests(pod), has_pod_level_requests(pod)
    requests, demand = asked, _amounts_of_pod(asked)
    amounts = demand
    if resized := pod.status.tells_of_resources:
        requests = total(pod)
        amounts = _amounts_of_pod(requests)
    scored = demand
    if pod_level or not _names_everything(pod):
        scored = _amounts_of_pod(_with_overhead(pod, _of_containers(pod, _ASSUMED)))
    non_zero = scored
    if pod_level or resized:
        assumed = {name: _ASSUMED[name] for name in _ASSUMED if not pod_level or name not in requests}
        non_zero = _amounts_of_pod(total(pod, assumed)) if assumed else amounts
    if not _COMPUTE.issuperset(requests):
        non_zero = Resource(non_zero.milli_cpu, non_zero.memory)
    return _shared(PodRequests(amounts, demand, scored, non_zero), tuple(amounts.scalar_resources))


def _amounts_of_pod(requests: ResourceList) -> Resource:
    amounts = resource_amounts(requests)
    return attrs.evolve(amounts, allowed_pod_number=0) if PODS in requests else amounts


# The order is a part of the key: messages name resources in it, and must not depend on earlier pods.
@functools.lru_cache(maxsize=10_000)
def _shared(requests: PodRequests, _order: tuple[str, ...]) -> PodRequests:
    """Return the same object for equal requests, such as those of a workload's pods."""
    return requests


def _names_everything(pod: Pod) -> bool:
    """Tell whether every container requests CPU and memory, so that scores assume nothing and the sums are the same."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        requests = container.resources.requests
        if CPU not in requests or MEMORY not in requests:
            return False
    return True


def total_requests(pod: Pod, assumed: ResourceList = _NONE) -> dict[str, Quantity]:
    """Return the exact requests of a pod, resizes considered.

    `assumed` are the amounts of resources that a container doesn't name.
    """
    if not pod.status.tells_of_resources:
        return spec_requests(pod, assumed)
    total = aggregate(pod, _resized(pod, assumed))
    if has_pod_level_requests(pod) and pod.spec.resources is not None:
        asked, status = pod.spec.resources.requests, pod.status
        counted: ResourceList = asked
        if status.resources is not None:
            counted = _counted(pod, asked, status.resources.requests, status.allocated_resources)
        # Only resources that the spec names; one that is missing from all the others is 0.
        total |= {name: counted.get(name, _ZERO) for name in _pod_level(asked)}
    return _with_overhead(pod, total)


def summed_requests(pod: Pod, assumed: ResourceList = _NONE) -> dict[str, Quantity]:
    """Return the exact requests of a pod by v1.37's rule for resizes; `assumed` as in `total_requests`.

    Source: component-helpers `resource.PodRequests` @1e152663.
    """
    if not pod.status.tells_of_resources:
        return spec_requests(pod, assumed)
    asked, status = _of_containers(pod, assumed), pod.status
    granted: ResourceList
    in_effect: ResourceList
    if status.allocated_resources and status.resources is not None and status.resources.requests:
        granted, in_effect = status.allocated_resources, status.resources.requests
    else:
        granted = aggregate(pod, _granted(pod, assumed))
        in_effect = aggregate(pod, _granted(pod, assumed, in_effect=True))
    total = _counted(pod, asked, in_effect, granted)
    if has_pod_level_requests(pod) and pod.spec.resources is not None:
        level: ResourceList = pod.spec.resources.requests
        if status.resources is not None:
            level = _counted(pod, level, status.resources.requests, status.allocated_resources)
        total |= _pod_level(level)
    return _with_overhead(pod, total)


def _granted(
    pod: Pod, assumed: ResourceList, *, in_effect: bool = False
) -> Callable[[Container], ResourceList]:
    """Return a function to the amounts that the kubelet has granted the pod's containers, or that are in effect.

    What a container's status doesn't tell is what its spec asks for, unless the resize is infeasible.
    """
    statuses = {
        each.name: each for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    is_infeasible = _resize_is_infeasible(pod)

    def amounts_of(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        told: ResourceList = _NONE
        if status is not None:
            if in_effect and status.resources is not None:
                told = status.resources.requests
            told = told or status.allocated_resources
        if not told and not is_infeasible:
            told = container.resources.requests
        return {**assumed, **told}

    return amounts_of


def spec_requests(pod: Pod, assumed: ResourceList = _NONE) -> dict[str, Quantity]:
    """Return the exact requests in the pod's spec, without regard to a resize; `assumed` as in `total_requests`."""
    total = _of_containers(pod, assumed)
    if pod.spec.resources is not None:
        total |= _pod_level(pod.spec.resources.requests)
    return _with_overhead(pod, total)


def _with_overhead(pod: Pod, total: dict[str, Quantity]) -> dict[str, Quantity]:
    if pod.spec.overhead:
        _add(total, pod.spec.overhead)
    return total


def spec_limits(pod: Pod) -> dict[str, Quantity]:
    """Return the exact limits in the pod's spec (`resource.PodLimits`); overhead counts where one is above 0."""
    total = aggregate(pod, lambda container: container.resources.limits)
    if pod.spec.resources is not None:
        total |= _pod_level(pod.spec.resources.limits)
    _add(total, {name: amount for name, amount in pod.spec.overhead.items() if total.get(name, _ZERO).sign})
    return total


def _pod_level(resources: ResourceList) -> dict[str, Quantity]:
    return {name: amount for name, amount in resources.items() if is_pod_level_resource(name)}


def _of_containers(pod: Pod, assumed: ResourceList) -> dict[str, Quantity]:
    if assumed:
        return aggregate(pod, lambda container: {**assumed, **container.resources.requests})
    return aggregate(pod, lambda container: container.resources.requests)


def _resized(pod: Pod, assumed: ResourceList) -> Callable[[Container], ResourceList]:
    """Return a function to the requests of the pod's containers during a possible resize.

    A container's status counts once the kubelet has reported the actual resources in it. The status of an init
    container that ends doesn't count, since such a container can't be resized.
    """
    status = pod.status
    ends = {container.name for container in pod.spec.init_containers if not container.is_sidecar}
    reports = {
        each.name: (each.resources.requests, each.allocated_resources)
        for each in (*status.container_statuses, *status.init_container_statuses)
        if each.resources is not None and each.name not in ends
    }

    def requests_of(container: Container) -> ResourceList:
        asked: ResourceList = container.resources.requests
        if container.name in reports:
            asked = _counted(pod, asked, *reports[container.name])
        return {**assumed, **asked}

    return requests_of


def _counted(
    pod: Pod, asked: ResourceList, in_effect: ResourceList, granted: ResourceList
) -> dict[str, Quantity]:
    """Return the largest of the three; without the desired amount (`asked`) if the resize is infeasible."""
    return _largest(in_effect, granted) if _resize_is_infeasible(pod) else _largest(asked, in_effect, granted)


def _resize_is_infeasible(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def aggregate(pod: Pod, resources_of: Callable[[Container], ResourceList]) -> dict[str, Quantity]:
    """Return the most that the containers of a pod need at any time; `resources_of` returns the needs of one."""
    total: dict[str, Quantity] = {}
    for container in pod.spec.containers:
        _add(total, resources_of(container))
    if not pod.spec.init_containers:
        return total
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
    if not total:
        total.update(more)
        return
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
    """Return Guaranteed if all have limits on CPU and memory, and equal requests; BestEffort if nothing is set."""
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
