"""Defaults and bounds of a LimitRange for the containers of new pods (admission plugin LimitRanger)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs

from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.pod import Pod, PodSpec
from kschedfw.api.policies import CONTAINER, POD, LimitRange, LimitRangeItem, LimitRangeSpec
from kschedfw.api.quantity import Quantity
from kschedfw.api.requests import aggregate
from kschedfw.api.resource_names import CPU, MEMORY

_ZERO: Final = Quantity.parse(0)


def default_limit_range(limit_range: LimitRange) -> LimitRange:
    """Set missing defaults: default limits to the maximum, default requests to the default limits or the minimum."""
    limits = tuple(map(_with_defaults, limit_range.spec.limits))
    return attrs.evolve(limit_range, spec=LimitRangeSpec(limits))


def _with_defaults(item: LimitRangeItem) -> LimitRangeItem:
    if item.type != CONTAINER:
        return item
    default = FrozenDict({**item.max, **item.default})
    requests = FrozenDict({**item.min, **default, **item.default_request})
    return attrs.evolve(item, default=default, default_request=requests)


def with_container_defaults(spec: PodSpec, limit_range: LimitRange) -> PodSpec:
    """Return the spec whose containers have defaults for unset amounts; the same spec if nothing changes.

    Init containers get the defaults, too.
    """
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            limits |= item.default
            requests |= item.default_request

    def defaulted(container: Container) -> Container:
        given = container.resources
        if given.limits.keys() >= limits.keys() and given.requests.keys() >= requests.keys():
            return container
        resources = ResourceRequirements(
            FrozenDict({**requests, **given.requests}), FrozenDict({**limits, **given.limits})
        )
        return attrs.evolve(container, resources=resources)

    containers = tuple(map(defaulted, spec.containers))
    init_containers = tuple(map(defaulted, spec.init_containers))
    if (containers, init_containers) == (spec.containers, spec.init_containers):
        return spec
    return attrs.evolve(spec, containers=containers, init_containers=init_containers)


def violations(pod: Pod, limit_range: LimitRange) -> Iterator[str]:
    """Yield the violations of the LimitRange by a pod that has its defaults, in the words of the API server."""
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            for container in (*pod.spec.containers, *pod.spec.init_containers):
                yield from _violations(item, container.resources)
        elif item.type == POD:
            yield from _violations(item, _of_pod(pod))


def _of_pod(pod: Pod) -> ResourceRequirements:
    """Return the requests and limits of the whole pod.

    Unlike the scheduler, LimitRanger doesn't count the overhead, and of the pod's own resources only CPU and
    memory.
    """
    requests = aggregate(pod, lambda container: container.resources.requests)
    limits = aggregate(pod, lambda container: container.resources.limits)
    if (own := pod.spec.resources) is not None:
        requests |= {name: amount for name, amount in own.requests.items() if name in (CPU, MEMORY)}
        limits |= {name: amount for name, amount in own.limits.items() if name in (CPU, MEMORY)}
    return ResourceRequirements(FrozenDict(requests), FrozenDict(limits))


def _violations(item: LimitRangeItem, asked: ResourceRequirements) -> Iterator[str]:
    checks: tuple[tuple[Mapping[str, Quantity], _Check], ...] = (
        (item.min, _below_minimum),
        (item.max, _above_maximum),
        (item.max_limit_request_ratio, _above_ratio),
    )
    for bounds, check in checks:
        # Kubernetes goes through a map, in any order.
        for name in sorted(bounds):
            bound = bounds[name]
            what = f"{name}{{}} per {item.type} is {bound}"
            if problem := check(what, bound, asked.requests.get(name), asked.limits.get(name)):
                yield problem


_Check = Callable[[str, Quantity, Quantity | None, Quantity | None], str]
"""Gets a text with a gap after the resource's name, the bound, the request and the limit; empty if these are fine."""


def _below_minimum(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    told = f"minimum {what.format(' usage')}"
    if request is None:
        return f"{told}.  No request is specified"
    if request < bound:
        return f"{told}, but request is {request}"
    return f"{told}, but limit is {limit}" if limit is not None and limit < bound else ""


def _above_maximum(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    told = f"maximum {what.format(' usage')}"
    if limit is None:
        return f"{told}.  No limit is specified"
    if limit > bound:
        return f"{told}, but limit is {limit}"
    return f"{told}, but request is {request}" if request is not None and request > bound else ""


def _above_ratio(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    told = what.format(" max limit to request ratio")
    if request is None or request == _ZERO:
        return f"{told}, but no request is specified or request is 0"
    if limit is None or limit == _ZERO:
        return f"{told}, but no limit is specified or limit is 0"
    asked, bounded, most = limit.milli_value(), request.milli_value(), bound.milli_value()
    # Amounts whose thousandths overflow are compared in whole units.
    ratio = asked / bounded if asked > 0 < bounded else limit.value() / max(request.value(), 1)
    return f"{told}, but provided ratio is {ratio:f}" if ratio * 1000 > most else ""
